//! What either side makes of messages: sizes as the plan counts them, and clear errors for whatever else may come.

#[path = "../../plans/tests/small_plan/mod.rs"]
mod small_plan;

use std::sync::{Arc, LazyLock};

use chacha20::ChaCha20Rng;
use chococ_plans::check::{CheckedPlan, check};
use chococ_runtime::client::{StageRecord, Watch};
use chococ_runtime::wire::{Kind, MessageError};
use chococ_runtime::{Client, Error, Inference, Server, Turn, reference};
use proptest::prelude::*;
use rand::SeedableRng;
use small_plan::small_plan;

/// Bytes of a header.
const HEADER: usize = 16;

/// Both sides of the small plan, and the messages of one inference.
struct Exchange {
    plan: Arc<CheckedPlan>,
    client: Client,
    server: Server,
    galois_keys: Vec<u8>,
    request: Vec<u8>,
    reply: Vec<u8>,
}

static EXCHANGE: LazyLock<Exchange> = LazyLock::new(|| {
    let (plan, weights) = small_plan();
    let plan = Arc::new(check(plan).expect("a plan that holds together"));
    let client = Client::new(plan.clone(), &mut rng()).expect("parameters that work");
    let server = Server::new(plan.clone(), &weights, &|_, _| {}).expect("complete weights");
    let galois_keys = client.galois_keys(&mut rng());
    let (_, request) = started(&client);
    let reply = server.session(&galois_keys).and_then(|session| session.answer(&request)).expect("own messages");
    Exchange { plan, client, server, galois_keys, request, reply }
});

fn rng() -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(3)
}

fn input() -> Vec<f32> {
    (0..36).map(|pixel| (pixel % 7) as f32 / 4.0).collect()
}

/// An inference that awaits its first reply, and the request it sends.
fn started(client: &Client) -> (Inference<'_>, Vec<u8>) {
    match client.start(&input(), &mut rng()).expect("an input of the right size") {
        (inference, Turn::Send(request)) => (inference, request),
        (_, Turn::Done(_)) => panic!("the plan's first stage is the server's"),
    }
}

/// Hands bytes to whoever should receive a message of this kind.
fn receive(kind: Kind, bytes: &[u8]) -> Result<(), Error> {
    let exchange = &*EXCHANGE;
    match kind {
        Kind::GaloisKeys => exchange.server.session(bytes).map(|_| ()),
        Kind::Request => exchange.server.session(&exchange.galois_keys)?.answer(bytes).map(|_| ()),
        Kind::Reply => started(&exchange.client).0.resume(bytes, &mut rng()).map(|_| ()),
    }
}

fn problem(kind: Kind, bytes: &[u8]) -> MessageError {
    match receive(kind, bytes).expect_err("a message that must be refused") {
        Error::Message { expected, problem } if expected == kind => problem,
        other => panic!("another error: {other}"),
    }
}

fn messages() -> [(Kind, &'static [u8]); 3] {
    let exchange = &*EXCHANGE;
    [(Kind::GaloisKeys, &exchange.galois_keys), (Kind::Request, &exchange.request), (Kind::Reply, &exchange.reply)]
}

#[test]
fn messages_are_as_long_as_the_plan_counts() {
    let plan = EXCHANGE.plan.plan();
    let counted = [plan.galois_bytes(), plan.cost().bytes_up, plan.cost().bytes_down];
    assert_eq!(messages().map(|(_, bytes)| bytes.len()), counted);
    for (kind, bytes) in messages() {
        assert_eq!(receive(kind, bytes), Ok(()));
    }
}

#[test]
fn messages_cut_short_or_drawn_out_are_refused() {
    for (kind, bytes) in messages() {
        let whole = bytes.len();
        for length in [0, 1, HEADER - 1, HEADER, HEADER + 1, HEADER + 32, whole / 2, whole - 1, whole + 1, 2 * whole] {
            let mut changed = bytes.to_vec();
            changed.resize(length, 0);
            let expected = if length < HEADER { HEADER } else { whole };
            assert_eq!(problem(kind, &changed), MessageError::Length { found: length, expected }, "{kind}");
        }
    }
}

#[test]
fn every_byte_of_a_header_counts() {
    for (kind, bytes) in messages() {
        for at in 0..HEADER {
            let mut changed = bytes.to_vec();
            changed[at] ^= 0x11;
            let found = problem(kind, &changed);
            let fits = match at {
                0..4 => matches!(found, MessageError::Magic { .. }),
                4 => matches!(found, MessageError::Version { .. }),
                5 => matches!(found, MessageError::Kind { .. }),
                // The server looks a stage up before it compares anything else.
                6..8 => matches!(found, MessageError::Stage { .. } | MessageError::NoStage { .. }),
                8..12 => matches!(found, MessageError::Count { .. }),
                _ => matches!(found, MessageError::Plan { .. }),
            };
            assert!(fits, "{kind}, byte {at}: {found}");
        }
    }
}

#[test]
fn messages_of_another_kind_are_refused() {
    for (kind, _) in messages() {
        for (_, other) in messages().into_iter().filter(|&(other, _)| other != kind) {
            assert!(matches!(problem(kind, other), MessageError::Kind { expected, .. } if expected == kind));
        }
    }
}

#[test]
fn numbers_that_are_no_residues_are_refused() {
    // Of a reply every number is one.
    for (kind, bytes) in messages().into_iter().filter(|(kind, _)| *kind != Kind::Reply) {
        // The last residue's numbers become all ones, which no prime exceeds.
        let mut changed = bytes.to_vec();
        let end = changed.len();
        changed[end - 64..].fill(0xff);
        assert!(matches!(problem(kind, &changed), MessageError::Coefficient { .. }), "{kind}");
    }
}

#[test]
fn messages_about_another_plan_are_refused() {
    let (mut plan, weights) = small_plan();
    plan.quantization.calibration = "other images".to_owned();
    let plan = Arc::new(check(plan).expect("a plan that holds together"));
    let client = Client::new(plan.clone(), &mut rng()).expect("parameters that work");
    let server = Server::new(plan, &weights, &|_, _| {}).expect("complete weights");
    let galois_keys = client.galois_keys(&mut rng());
    let (_, request) = started(&client);
    let reply = server.session(&galois_keys).and_then(|session| session.answer(&request)).expect("own messages");
    for (kind, bytes) in [(Kind::GaloisKeys, galois_keys), (Kind::Request, request), (Kind::Reply, reply)] {
        assert!(matches!(problem(kind, &bytes), MessageError::Plan { .. }), "{kind}");
    }
}

#[test]
fn a_refused_reply_changes_nothing() {
    let exchange = &*EXCHANGE;
    let (mut undisturbed, _) = started(&exchange.client);
    let expected = undisturbed.resume(&exchange.reply, &mut rng());
    let (mut inference, _) = started(&exchange.client);
    assert!(inference.resume(&exchange.request, &mut rng()).is_err());
    assert!(inference.resume(&exchange.reply[1..], &mut rng()).is_err());
    let answer = inference.resume(&exchange.reply, &mut rng());
    assert!(matches!(answer, Ok(Turn::Done(_))));
    assert_eq!(answer, expected);
    assert_eq!(inference.resume(&exchange.reply, &mut rng()), Err(Error::Ended));
}

#[test]
fn a_session_answers_alike_however_often_it_is_asked() {
    let exchange = &*EXCHANGE;
    let session = exchange.server.session(&exchange.galois_keys).expect("the client's own keys");
    std::thread::scope(|threads| {
        let ask = || session.answer(&exchange.request);
        let answers = [threads.spawn(ask), threads.spawn(ask)].map(|thread| thread.join().expect("no panic"));
        assert!(answers.iter().all(|answer| answer.as_ref() == Ok(&exchange.reply)));
    });
    assert_eq!(session.operations().products, 2 * exchange.plan.plan().cost().products);
}

/// What `--verify` fails with: the stage, the element, and both numbers.
#[test]
fn a_comparison_names_the_first_difference() {
    let exchange = &*EXCHANGE;
    let client = Client::new(exchange.plan.clone(), &mut rng()).expect("parameters that work");
    let client = client.watch(Watch { integers: true, budgets: false });
    let (mut inference, _) = started(&client);
    let Ok(Turn::Done(output)) = inference.resume(&exchange.reply, &mut rng()) else { panic!("one stage only") };
    let (_, weights) = small_plan();
    let reference = reference::integers(&exchange.plan, &weights, &input()).expect("complete weights");
    assert_eq!(reference.compare(&exchange.plan, inference.records(), &output), Ok(()));

    let mut records = inference.records().to_vec();
    records[0].accumulators[40] += 1;
    records[0].accumulators[50] += 1;
    let compare = |records: &[StageRecord], output: &[f32]| {
        reference.compare(&exchange.plan, records, output).expect_err("something differs").to_string()
    };
    let expected = reference.stages[0].accumulators[40];
    let text = format!("stage `conv`: accumulator 40 is {}, the reference has {expected}", expected + 1);
    assert_eq!(compare(&records, &output), text);
    records[0].codes[7] = 9;
    assert_eq!(compare(&records, &output), "stage `conv`: code 7 is 9, the reference has 0");
    let mut output = output;
    output[71] = -0.0;
    let text = format!("answer 71 is -0, the reference has {}", reference.output[71]);
    assert_eq!(compare(inference.records(), &output), text);
}

#[test]
fn two_requests_of_one_input_have_nothing_in_common() {
    let client = &EXCHANGE.client;
    let mut rng = rng();
    let mut request = || match client.start(&input(), &mut rng).expect("an input of the right size") {
        (_, Turn::Send(request)) => request,
        (_, Turn::Done(_)) => panic!("the plan's first stage is the server's"),
    };
    let (first, second) = (request(), request());
    assert_eq!(first[..HEADER], second[..HEADER]);
    let equal = first[HEADER..].iter().zip(&second[HEADER..]).filter(|(a, b)| a == b).count();
    // One byte in 256 agrees by chance: 48 of 12,000, give or take 7.
    assert!(equal * 128 < first.len(), "{equal} of {} bytes agree", first.len());
}

#[test]
fn inputs_that_do_not_fit_are_refused() {
    let start = |input: &[f32]| EXCHANGE.client.start(input, &mut rng()).map(|_| ());
    assert_eq!(start(&[0.0; 35]), Err(Error::InputLength { found: 35, shape: vec![1, 6, 6] }));
    let mut input = input();
    input[7] = f32::INFINITY;
    assert_eq!(start(&input), Err(Error::InputNotFinite { index: 7, value: f32::INFINITY }));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    /// Whatever a peer sends is refused or taken, never a panic.
    #[test]
    fn changed_and_random_bytes_do_no_harm(
        which in 0usize..3,
        at in any::<prop::sample::Index>(),
        byte: u8,
        random in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let (kind, bytes) = messages()[which];
        let mut changed = bytes.to_vec();
        *at.get_mut(&mut changed) = byte;
        let _ = receive(kind, &changed);
        prop_assert!(receive(kind, &random).is_err());
        let mut headed = bytes[..HEADER].to_vec();
        headed.extend(random);
        prop_assert!(receive(kind, &headed).is_err());
    }
}
