//! How tables and sizes look.

use comfy_table::{Table, presets};

/// An empty table, in a form that can be pasted into Markdown.
pub fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN).set_header(header.to_vec());
    table
}

/// An empty table without lines, narrow enough for a screen of 80 columns; print it by `trim_fmt`.
pub fn narrow_table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header.to_vec());
    table.column_iter_mut().for_each(|column| {
        column.set_padding((0, 2));
    });
    table
}

/// Bytes in thousands, to a tenth.
pub fn kilobytes(bytes: usize) -> String {
    format!("{:.1}", bytes as f64 / 1e3)
}
