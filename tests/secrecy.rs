//! What crosses the wire, and what each side loads: no secret reaches the server, no weight the client.

use std::collections::HashSet;

use chacha20::ChaCha20Rng;
use chococ_plans::file::to_text;
use chococ_plans::network::LayerWeights;
use chococ_plans::packing::{Alignment, PackingKind};
use chococ_plans::params::bits_of;
use chococ_plans::weights::{FloatWeights, Weights};
use chococ_runtime::Turn;
use chococ_runtime::bfv::context::Context;
use chococ_runtime::bfv::keys::SecretKey;
use chococ_runtime::bfv::noise::measured_budget_bits;
use chococ_runtime::contexts::Contexts;
use chococ_runtime::math::sample;
use chococ_runtime::wire::header::fingerprint;
use chococ_runtime::wire::request;
use chococ_tests::{Pair, compiled, images, model};
use rand::SeedableRng;

/// Bytes that must not be found: long enough that chance never finds them.
const WINDOW: usize = 24;

/// The seed of the client under test; its secrets are the first that are drawn from it.
const SEED: u64 = 5;

/// All that the server receives in one inference, and the text of the plan.
fn received() -> (Vec<u8>, Pair, String) {
    let compiled = compiled("lenet5_small", 4, None);
    let mut pair = Pair::new(&compiled, SEED);
    let image = images(model("lenet5_small"), true, 1).inputs.remove(0);
    let mut bytes = pair.galois_keys.clone();
    let session = pair.server.session(&pair.galois_keys).expect("the client's own keys");
    let (mut inference, mut turn) = pair.client.start(&image, &mut pair.rng).expect("an image of the right size");
    while let Turn::Send(request) = turn {
        bytes.extend(&request);
        let reply = session.answer(&request).expect("the client's own request");
        turn = inference.resume(&reply, &mut pair.rng).expect("the server's own reply");
    }
    drop((inference, session));
    (bytes, pair, to_text(&compiled.plan))
}

/// Residues packed at `bits` each, the lowest bit first, as the wire packs them.
fn packed(residues: &[u64], bits: u32) -> Vec<u8> {
    let mut bytes = vec![0u8; (residues.len() * bits as usize).div_ceil(8)];
    for (index, residue) in residues.iter().enumerate() {
        for bit in (0..bits as usize).filter(|bit| residue >> bit & 1 == 1) {
            let at = index * bits as usize + bit;
            bytes[at / 8] |= 1 << (at % 8);
        }
    }
    bytes
}

/// The secret in every form in which it could slip out.
fn forms(secret: &[i8], context: &Context) -> Vec<Vec<u8>> {
    let ring = context.ring();
    let mut forms = vec![secret.iter().map(|&s| s as u8).collect(), secret.iter().map(|&s| (s + 1) as u8).collect()];
    let two_bits: Vec<u64> = secret.iter().map(|&s| (s & 3) as u64).collect();
    forms.push(packed(&two_bits, 2));
    for (index, modulus) in ring.moduli().iter().enumerate() {
        let mut residues: Vec<u64> = secret.iter().map(|&s| modulus.from_signed(s.into())).collect();
        for _ in ["coefficients", "evaluations"] {
            forms.push(packed(&residues, bits_of(modulus.value())));
            forms.push(residues.iter().flat_map(|residue| residue.to_le_bytes()).collect());
            forms.push(residues.iter().flat_map(|&residue| (residue as u32).to_le_bytes()).collect());
            ring.ntts()[index].forward(&mut residues);
        }
    }
    forms
}

/// Whether any window of a needle stands anywhere among the bytes.
fn contains(bytes: &[u8], needles: &[Vec<u8>]) -> bool {
    let windows: HashSet<&[u8]> = needles.iter().flat_map(|needle| needle.windows(WINDOW)).collect();
    bytes.windows(WINDOW).any(|window| windows.contains(window))
}

#[test]
fn nothing_the_server_receives_contains_a_secret() {
    let (bytes, pair, _) = received();
    let mut rng = ChaCha20Rng::seed_from_u64(SEED);
    let contexts = Contexts::new(&pair.plan).expect("a checked plan's parameters work");
    for context in contexts.key_sets() {
        let mut secret = vec![0; context.ring_degree()];
        sample::ternary(&mut rng, &mut secret);
        assert!(secret.contains(&-1) && secret.contains(&1));
        let forms = forms(&secret, context);
        assert!(!contains(&bytes, &forms));
        // The search would find it: a piece of any form, anywhere.
        for form in &forms {
            let mut leak = bytes.clone();
            leak.extend(&form[form.len() / 2..form.len() / 2 + 2 * WINDOW]);
            assert!(contains(&leak, &forms));
        }
    }
}

/// The secrets above are those of the client: drawn again from the same seed, they decrypt what it sends.
#[test]
fn the_seed_gives_the_secrets() {
    // In slots all of c0 travels, so that its noise can be measured.
    let packing = PackingKind::Slots(Alignment::Rotational);
    let mut pair = Pair::new(&compiled("logreg", 4, Some(packing)), SEED);
    let plan = pair.plan.clone();
    let contexts = Contexts::new(&plan).expect("a checked plan's parameters work");
    let context = contexts.stage(0);
    let [mut rng, mut drawn] = [SEED; 2].map(ChaCha20Rng::seed_from_u64);
    let secret = SecretKey::generate(context, &mut rng);
    sample::ternary(&mut drawn, &mut vec![0; context.ring_degree()]);
    assert_eq!(rng, drawn, "a secret key is one draw of ternary numbers, and nothing else");

    let image = images(model("logreg"), true, 1).inputs.remove(0);
    let (_, turn) = pair.client.start(&image, &mut pair.rng).expect("an image of the right size");
    let Turn::Send(bytes) = turn else { panic!("the first stage is the server's") };
    let stage = plan.server_stages().next().expect("there is one");
    let mut ciphertexts = request::read(stage, 0, fingerprint(&plan), context, &bytes).expect("the client's own");
    let ciphertext = ciphertexts.remove(0).expand(context);
    let budget = measured_budget_bits(context, &secret, &ciphertext);
    assert!(budget > stage.stage.budget.fresh_bits, "{budget} bits: another secret would leave none");
}

/// Whether a text holds weights: a dozen codes or real weights in a row, however they are set apart.
fn holds_weights(text: &str, weights: &Weights) -> bool {
    let numbers: Vec<&str> = text.split(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c))).collect();
    let numbers: Vec<&str> = numbers.into_iter().filter(|word| word.parse::<f64>().is_ok()).collect();
    let runs: HashSet<&[&str]> = numbers.windows(12).collect();
    let held = |values: Vec<String>| {
        let words: Vec<&str> = values.iter().map(String::as_str).collect();
        // A run of one number says nothing.
        words.windows(12).any(|run| run.iter().any(|word| *word != run[0]) && runs.contains(run))
    };
    let codes = |layer: &LayerWeights| held(layer.weights.iter().map(i32::to_string).collect());
    let reals = |layer: &FloatWeights| held(layer.weights.iter().map(f32::to_string).collect());
    weights.integers.values().any(codes) || weights.floats.values().any(reals)
}

#[test]
fn nothing_the_client_loads_contains_weights() {
    let (_, pair, plan) = received();
    assert!(!holds_weights(&plan, &pair.weights));
    // The search would find them: a piece of any layer, as codes or as real numbers, anywhere in the plan.
    for (name, layer) in &pair.weights.integers {
        let middle = layer.weights.len() / 2;
        let codes = layer.weights[middle..].iter().take(40).map(i32::to_string).collect::<Vec<_>>().join(", ");
        assert!(holds_weights(&format!("{plan}[{codes}]"), &pair.weights), "{name}");
        let reals = &pair.weights.floats[name].weights[middle..];
        let reals = reals.iter().take(12).map(f32::to_string).collect::<Vec<_>>().join("\n");
        assert!(holds_weights(&format!("{plan}{reals}"), &pair.weights), "{name}");
    }
}
