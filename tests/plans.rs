//! Snapshots of the plans of all networks, and what makes them trustworthy as such: the same input, the same bytes.

use chococ_models::all;
use chococ_plans::file::{from_text, sha256, to_text};
use chococ_tests::compiled;

/// The text of a plan, with the long lists of scales and ranges cut short and a hash in their place.
fn shortened(text: &str) -> String {
    let cut = |line: &str| match line.char_indices().nth(160) {
        Some((end, _)) if line.contains(": [") => format!("{} ... ({})", &line[..end], &sha256(line.as_bytes())[..16]),
        _ => line.to_owned(),
    };
    text.lines().filter(|line| !line.starts_with("// sha256")).map(|line| cut(line) + "\n").collect()
}

#[test]
fn plans_of_all_networks() {
    for model in all() {
        let text = to_text(&compiled(model.name, 4, None).plan);
        insta::assert_snapshot!(format!("plan_{}", model.name), shortened(&text));
    }
}

#[test]
fn compiling_is_deterministic_whatever_the_number_of_threads() {
    for name in ["lenet5_small", "mobilenet_fashion_bn"] {
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be had");
            pool.install(|| compiled(name, 4, None))
        };
        let (one, three) = (on(1), on(3));
        assert!(to_text(&one.plan) == to_text(&three.plan), "{name}: the plans differ");
        assert!(one.weights == three.weights, "{name}: the weights differ");
    }
}

#[test]
fn written_plans_read_back_whole() {
    let compiled = compiled("mlp", 4, None);
    let read = from_text(&to_text(&compiled.plan)).expect("it was just written");
    assert_eq!(read.plan(), &compiled.plan);
}
