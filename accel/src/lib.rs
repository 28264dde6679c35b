//! Place reserved for the client's share as hardware: a functional, cycle-counting model of CHOCO-TACO, the paper's
//! accelerator for encryption and decryption.
//!
//! Nothing is modelled yet, and this crate exports nothing. The software that the model will have to agree with, bit
//! for bit, is `chococ_runtime::bfv`.
