//! Every message, byte for byte, as docs/wire.md has it.
//!
//! tests/vectors/ holds small plans, the messages of one inference with each, and what a reader finds in them; wire.py
//! decodes the same messages by docs/wire.md alone. The secret keys in there are drawn from the seed of this test.
//!
//! Rewrites the vectors: `CHOCOC_WRITE_VECTORS=1 cargo test --release --workspace --test wire`. The commit that does so
//! says what changed on the wire, and raises the version in the header unless it was the plans alone.

use std::path::{Path, PathBuf};

use chacha20::ChaCha20Rng;
use chococ_compiler::graph::{Graph, Node, Op};
use chococ_compiler::{Options, compile_graph};
use chococ_plans::check::{CheckedPlan, CheckedStage};
use chococ_plans::file::{read_plan, read_weights, sha256, write};
use chococ_plans::op::{ClientOp, Conv, Dense, Linear};
use chococ_plans::packing::layout::Layout;
use chococ_plans::packing::windows::Windows;
use chococ_plans::packing::{Alignment, CoefficientPacking, Packing, PackingKind, SlotPacking, TapOrder};
use chococ_runtime::Turn;
use chococ_runtime::bfv::context::Context;
use chococ_runtime::bfv::keys::{ReplyKey, SecretKey};
use chococ_runtime::bfv::reply::decrypt_reply;
use chococ_runtime::contexts::Contexts;
use chococ_runtime::math::sample;
use chococ_runtime::wire::header::fingerprint;
use chococ_runtime::wire::{galois, reply, request};
use chococ_tests::Pair;
use petgraph::graph::DiGraph;
use rand::SeedableRng;
use serde_json::{Value, json};

/// All randomness of the vectors.
const SEED: u64 = 8;

/// Set to rewrite the vectors.
const WRITE: &str = "CHOCOC_WRITE_VECTORS";

/// Two primes, no keys.
#[test]
fn messages_in_slots() {
    let dense = Linear::Dense(Dense { inputs: 6, outputs: 3 });
    compare("slots", 4, PackingKind::Slots(Alignment::Rotational), &[Step::Linear(dense)]);
}

/// A prime beyond 32 bits; several ciphertexts up; merges, so that there is a key, of two digits, in one of two key sets;
/// a second stage.
#[test]
fn messages_in_coefficients() {
    let conv = Linear::Conv(Conv {
        input: [1, 48, 48],
        output: [2, 24, 24],
        kernel: [3, 3],
        strides: [2, 2],
        pads_before: [1, 1],
        dilations: [1, 1],
        groups: 1,
    });
    let steps = [
        Step::Linear(conv),
        Step::Client(ClientOp::GlobalAveragePool, vec![2, 1, 1]),
        Step::Client(ClientOp::Reshape, vec![2]),
        Step::Linear(Linear::Dense(Dense { inputs: 2, outputs: 3 })),
    ];
    compare("coefficients", 8, PackingKind::Coefficients, &steps);
}

/// Which coefficients travel: for windows, tiles, stacks and merges of every sort.
#[test]
fn positions() {
    let conv = |input: [usize; 3], channels, kernel: [usize; 2], strides: [usize; 2], pads_before: [usize; 2]| Conv {
        input,
        output: [channels, (input[1] + 3 - kernel[0]) / strides[0], (input[2] + 3 - kernel[1]) / strides[1]],
        kernel,
        strides,
        pads_before,
        dilations: [1, 1],
        groups: 1,
    };
    let convs = [
        conv([3, 10, 12], 5, [3, 3], [1, 1], [1, 1]),
        conv([2, 12, 11], 3, [5, 2], [2, 3], [2, 0]),
        Conv { groups: 4, dilations: [2, 1], ..conv([4, 9, 9], 4, [3, 3], [1, 1], [2, 1]) },
        conv([8, 8, 8], 6, [1, 1], [2, 2], [0, 0]),
        conv([1, 14, 5], 2, [2, 4], [3, 1], [0, 2]),
    ];
    let operators = convs.into_iter().map(Linear::Conv).chain([Linear::Dense(Dense { inputs: 70, outputs: 9 })]);
    let mut lines = Vec::new();
    for operator in operators {
        let [rows, columns] = Windows::new(&operator).output;
        let tiles = [[rows, columns], [rows.div_ceil(2), columns], [rows.div_ceil(3), columns.div_ceil(2)]];
        let packings = tiles.into_iter().flat_map(|tile| {
            [(1, 1, 1, 1), (1, 4, 2, 4), (2, 2, 3, 1), (3, 4, 1, 2), (1, 64, 1, 8)].map(
                |(tiles_at_once, interleave, stack, merge)| {
                    Packing::Coefficients(CoefficientPacking { tile, tiles_at_once, interleave, stack, merge })
                },
            )
        });
        let slots = [Alignment::Rotational, Alignment::Punctured]
            .map(|alignment| Packing::Slots(SlotPacking { alignment, taps: TapOrder::Inputs, baby_shifts: 1 }));
        let layouts = packings.chain(slots).filter_map(|packing| {
            let layout = Layout::new(&operator, packing, 1024).ok()?;
            let sent = (0..layout.inputs()).flat_map(|input| layout.sent(input));
            let returned = (0..layout.outputs()).flat_map(|output| layout.returned(output));
            Some(json!({
                "operator": operator,
                "packing": packing,
                "ring_degree": 1024,
                "inputs": layout.inputs(),
                "outputs": layout.outputs(),
                "sent": listed(sent.map(|position| position as u64)),
                "returned": listed(returned.map(|position| position as u64)),
            }))
        });
        lines.extend(layouts.map(|layout| format!("{layout}\n")));
    }
    // Enough of them; all would make a large file.
    let lines: Vec<String> = lines.into_iter().step_by(3).collect();
    compare_file(&vectors().join("positions.jsonl"), lines.concat().as_bytes());
}

/// One operator of a chain.
enum Step {
    Linear(Linear),
    Client(ClientOp, Vec<usize>),
}

/// A chain of operators, with weights that look random.
fn chain(steps: &[Step]) -> Graph {
    let Some(Step::Linear(first)) = steps.first() else { panic!("the chains of this file begin with a linear layer") };
    let mut nodes = DiGraph::new();
    let input = nodes.add_node(Node { name: "input".to_owned(), op: Op::Input, shape: first.input_shape() });
    let mut last = input;
    for step in steps {
        let (op, shape) = match step {
            Step::Client(op, shape) => (Op::Client(op.clone()), shape.clone()),
            Step::Linear(operator) => {
                let count = operator.weight_shape().iter().product();
                let weights = (0..count).map(|i: usize| ((i * 37 + 11) % 64) as f32 / 32.0 - 1.0).collect();
                let bias = vec![0.5; operator.output_channels()];
                (Op::Linear { operator: operator.clone(), weights, bias }, operator.output_shape())
            }
        };
        let node = nodes.add_node(Node { name: format!("layer{}", nodes.node_count()), op, shape });
        nodes.add_edge(last, node, 0);
        last = node;
    }
    Graph { nodes, input, output: last }
}

/// Compares the messages of a plan, and what is found in them, with the vectors; or rewrites plan and vectors.
fn compare(name: &str, bits: u32, kind: PackingKind, steps: &[Step]) {
    let folder = vectors().join(name);
    let plan_path = folder.join("plan.ron");
    if rewrites() {
        let options = Options {
            activation_bits: bits,
            weight_bits: bits,
            packing: Some(kind),
            ring_degree: Some(2048),
            ..Options::new(format!("{name}.onnx"), "plan.safetensors".to_owned())
        };
        let compiled = compile_graph(&chain(steps), sha256(b""), &options, &|_| {}).expect("a small network");
        std::fs::create_dir_all(&folder).expect("the folder of the tests can be written to");
        write(&plan_path, &compiled.plan, &compiled.weights).expect("the folder of the tests can be written to");
    }
    let plan = read_plan(&plan_path).unwrap_or_else(|error| panic!("{error}\n  if the format changed: {WRITE}=1"));
    let weights = read_weights(&plan_path, plan.plan()).unwrap_or_else(|error| panic!("{error}"));
    let mut pair = Pair::with_weights(plan, weights, SEED);
    let messages = messages(&mut pair);
    let found = serde_json::to_string_pretty(&found(&pair, &messages)).expect("numbers and text");
    compare_file(&folder.join("plan.json"), format!("{}\n", json!(pair.plan.plan())).as_bytes());
    compare_file(&folder.join("found.json"), format!("{found}\n").as_bytes());
    compare_file(&folder.join("galois_keys.bin"), &messages.galois_keys);
    for (stage, (request, reply)) in messages.requests.iter().zip(&messages.replies).enumerate() {
        compare_file(&folder.join(format!("request_{stage}.bin")), request);
        compare_file(&folder.join(format!("reply_{stage}.bin")), reply);
    }
}

/// Compares a file of the vectors with what it should hold; or rewrites it.
fn compare_file(path: &Path, bytes: &[u8]) {
    if rewrites() {
        std::fs::write(path, bytes).expect("the folder of the tests can be written to");
    }
    let expected = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(bytes == expected, "{} is not what the code writes; see the top of this file", path.display());
}

fn rewrites() -> bool {
    std::env::var_os(WRITE).is_some()
}

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors")
}

/// The messages of one inference.
struct Messages {
    galois_keys: Vec<u8>,
    requests: Vec<Vec<u8>>,
    replies: Vec<Vec<u8>>,
    /// What was encrypted, a server stage each.
    codes: Vec<Vec<i32>>,
}

/// Runs one inference, and keeps what crosses the wire.
fn messages(pair: &mut Pair) -> Messages {
    let elements = pair.plan.plan().input_shape.iter().product();
    let input: Vec<f32> = (0..elements).map(|i: usize| ((i * 29 + 3) % 50) as f32 / 50.0).collect();
    let session = pair.server.session(&pair.galois_keys).expect("the client's own keys");
    let (mut inference, mut turn) = pair.client.start(&input, &mut pair.rng).expect("an input of the right shape");
    let (mut requests, mut replies) = (Vec::new(), Vec::new());
    while let Turn::Send(request) = turn {
        let reply = session.answer(&request).expect("the client's own request");
        turn = inference.resume(&reply, &mut pair.rng).expect("the server's own reply");
        requests.push(request);
        replies.push(reply);
    }
    let codes = inference.records().iter().map(|record| record.codes.clone()).collect();
    Messages { galois_keys: pair.galois_keys.clone(), requests, replies, codes }
}

/// What a reader finds in the messages, and the secret keys that it needs for that: five coefficients a byte, the
/// base-3 digits from the lowest, each less 1.
fn found(pair: &Pair, messages: &Messages) -> Value {
    let plan = &*pair.plan;
    // The client draws its secret keys first, and a secret key is one draw of ternary numbers.
    let [mut rng, mut drawn] = [SEED; 2].map(ChaCha20Rng::seed_from_u64);
    let mut texts = Vec::new();
    let contexts = Contexts::new(plan).expect("a checked plan's parameters work");
    let mut secrets = Vec::new();
    for context in contexts.key_sets() {
        let mut ternary = vec![0; context.ring_degree()];
        sample::ternary(&mut drawn, &mut ternary);
        let digits = |five: &[i8]| five.iter().rev().fold(0, |sum, &s| 3 * sum + (s + 1) as u8);
        texts.push(ternary.chunks(5).map(|five| format!("{:02x}", digits(five))).collect::<String>());
        secrets.push(SecretKey::generate(context, &mut rng));
    }
    let stages = plan.server_stages().enumerate().map(|(index, stage)| {
        let (context, secret) = (contexts.stage(index), &secrets[stage.stage.key_set]);
        let (codes, request, reply) = (&messages.codes[index], &messages.requests[index], &messages.replies[index]);
        json!({
            "request": found_in_request(plan, stage, index, (context, codes), request),
            "reply": found_in_reply(plan, stage, index, (context, secret), reply),
        })
    });
    let stages: Vec<Value> = stages.collect();
    let key_sets: Vec<&Context> = contexts.key_sets().collect();
    json!({
        "secrets": texts,
        "galois_keys": found_in_galois_keys(plan, &key_sets, &messages.galois_keys),
        "stages": stages,
    })
}

/// Numbers as the vectors have them: how many, the first of them, and the first eight bytes of the SHA-256 of all, as
/// 64-bit little-endian words.
fn listed(numbers: impl IntoIterator<Item = u64>) -> String {
    let numbers: Vec<u64> = numbers.into_iter().collect();
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    let first: String = numbers.iter().take(4).map(|number| format!("{number} ")).collect();
    format!("{} numbers: {first}... SHA-256 {}...", numbers.len(), &sha256(&bytes)[..16])
}

fn found_in_galois_keys(plan: &CheckedPlan, contexts: &[&Context], bytes: &[u8]) -> Value {
    let address = galois::address(plan, fingerprint(plan));
    let sets = galois::read(address, plan, contexts, bytes).expect("the client's own keys");
    let sets = sets.into_iter().zip(contexts).map(|(keys, context)| {
        let keys = keys.into_iter().map(|key| {
            let mut uniform = ChaCha20Rng::from_seed(key.seed);
            uniform.set_stream(key.stream);
            let ring = context.ring();
            let digits = key.b.iter().map(|b| {
                let a = ring.uniform::<()>(ring.moduli().len(), &mut uniform);
                json!({ "b": listed(b.words().to_vec()), "a": listed(a.words().to_vec()) })
            });
            json!({ "element": key.element, "digits": digits.collect::<Vec<_>>() })
        });
        keys.collect::<Vec<_>>()
    });
    json!(sets.collect::<Vec<_>>())
}

fn found_in_request(
    plan: &CheckedPlan,
    stage: CheckedStage<'_>,
    index: usize,
    (context, codes): (&Context, &[i32]),
    bytes: &[u8],
) -> Value {
    let t = context.plaintext_modulus();
    let packed = match stage.layout {
        Layout::Coefficients(layout) => layout.pack(codes, t),
        Layout::Slots(layout) => {
            let encoder = context.encoder().expect("the plaintext modulus of a checked stage in slots has a transform");
            layout.pack(codes, t).iter().map(|slots| encoder.encode(slots).coefficients().to_vec()).collect()
        }
    };
    let ciphertexts = request::read(stage, index, fingerprint(plan), context, bytes).expect("the client's own request");
    let ciphertexts = ciphertexts.into_iter().zip(packed).enumerate().map(|(input, (ciphertext, message))| {
        let sent = stage.layout.sent(input);
        let c0 = ciphertext.c0.residues().flat_map(|residue| sent.iter().map(|&position| residue[position]));
        let c0 = listed(c0.collect::<Vec<_>>());
        let c1 = listed(ciphertext.expand(context).c1.words().to_vec());
        json!({
            "positions": listed(sent.iter().map(|&position| position as u64)),
            "c0": c0,
            "c1": c1,
            "message": listed(sent.iter().map(|&position| message[position])),
        })
    });
    json!(ciphertexts.collect::<Vec<_>>())
}

fn found_in_reply(
    plan: &CheckedPlan,
    stage: CheckedStage<'_>,
    index: usize,
    (context, secret): (&Context, &SecretKey),
    bytes: &[u8],
) -> Value {
    let ciphertexts = reply::read(stage, index, fingerprint(plan), bytes).expect("the server's own reply");
    let ciphertexts = ciphertexts.map(|ciphertext| {
        let (reply, returned) = ciphertext.expect("the server's own reply");
        let results = decrypt_reply(context, &ReplyKey::new(context, secret), &reply, &returned);
        json!({
            "positions": listed(returned.into_iter().map(|position| position as u64)),
            "c0": listed(reply.c0),
            "c1": listed(reply.c1),
            "results": listed(results),
        })
    });
    json!(ciphertexts.collect::<Vec<_>>())
}
