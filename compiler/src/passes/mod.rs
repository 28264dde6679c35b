//! One pass a file, in the order in which [`compile`](crate::compile) takes them.

pub mod bound_memory;
pub mod choose_packing;
pub mod choose_parameters;
pub mod choose_stages;
pub mod fold_batch_norm;
pub mod fold_pads;
pub mod lower;
pub mod merge_siblings;
pub mod quantize;
pub mod share_keys;
pub mod split_stages;
