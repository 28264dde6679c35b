//! What everyone agrees on: the plan as plain data, read and written as RON, and what follows from it.
//!
//! What a plan computes:
//! - [`op`]: the closed list of operators, linear ones for the server, all others for the client
//! - [`network`]: values, client steps and linear layers on integers
//! - [`eval`]: what they mean, in the clear
//! - [`input`]: inputs from .npy, .npz and .png files
//!
//! How it is encrypted:
//! - [`params`]: encryption parameters and conventions; [`primes`]: where their primes come from;
//!   [`security`]: how large they may be
//! - [`packing`]: where each number sits, and the rotations and products of a stage
//! - [`evaluation`]: what the server does; [`noise`]: the noise budget that is left; [`cost`]: bytes and operations;
//!   [`work`]: what they come to on either side
//!
//! The plan itself:
//! - [`plan`]: the data; [`check`]: whether it holds together; [`weights`], [`file`](mod@file): on disk

pub mod check;
pub mod cost;
pub mod eval;
pub mod evaluation;
pub mod file;
pub mod input;
pub mod network;
pub mod noise;
pub mod op;
pub mod packing;
pub mod params;
pub mod plan;
pub mod primes;
pub mod security;
pub mod weights;
pub mod work;
