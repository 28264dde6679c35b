//! What is wrong with a plan is found, whatever it is, and said.

mod small_plan;

use chococ_plans::check::check;
use chococ_plans::cost::count;
use chococ_plans::evaluation::Evaluation;
use chococ_plans::network::ValueId;
use chococ_plans::noise::{EncryptionKey, estimate};
use chococ_plans::packing::layout::Layout;
use chococ_plans::params::Parameters;
use chococ_plans::plan::{Plan, ServerStage, Stage};
use small_plan::small_plan;

fn server(plan: &mut Plan) -> &mut ServerStage {
    let Stage::Server(server) = &mut plan.stages[0] else { unreachable!("the first stage is the server's") };
    server
}

/// What `check` says of the small plan after a change.
fn after(change: impl FnOnce(&mut Plan)) -> String {
    let (mut plan, _) = small_plan();
    change(&mut plan);
    check(plan).expect_err("the change must be noticed").to_string()
}

#[test]
fn a_plan_that_holds_together_passes() {
    let (plan, _) = small_plan();
    let checked = check(plan.clone()).expect("nothing is wrong with it");
    assert_eq!(checked.plan(), &plan);
    assert_eq!(checked.server_stages().len(), 1);
}

#[test]
fn parameters_must_be_secure_and_work() {
    insta::assert_snapshot!(after(|plan| {
        let parameters = &mut plan.key_sets[0].parameters;
        parameters.ciphertext_primes.push(1_152_921_504_606_830_593);
    }), @r"
    key set 0: a modulus of 139.0 bits is insecure at ring degree 4096: 128-bit security allows 106
      try: compile the model again, and leave the parameters to the compiler
    ");
    insta::assert_snapshot!(after(|plan| plan.key_sets[0].parameters.ring_degree = 512),
        @"key set 0: ring degree 512 is none of [1024, 2048, 4096, 8192, 16384, 32768]");
    insta::assert_snapshot!(after(|plan| plan.key_sets[0].parameters.ciphertext_primes[1] += 8192),
        @"key set 0: 33546241 is no prime below 2^60 that is 1 modulo 8192");
    insta::assert_snapshot!(after(|plan| plan.key_sets[0].parameters.ciphertext_primes[1] = 16_760_833),
        @"key set 0: the prime 16760833 occurs twice");
    insta::assert_snapshot!(after(|plan| server(plan).parameters.plaintext_modulus = 2 * 16_760_833),
        @"stage `conv`: plaintext modulus 33521666");
    insta::assert_snapshot!(after(|plan| server(plan).parameters.plaintext_modulus = 40_962),
        @"stage `conv`: slots need a plaintext modulus that is a prime and 1 modulo 8192");
    insta::assert_snapshot!(after(|plan| server(plan).parameters.request_dropped_bits = 1),
        @"stage `conv`: requests that leave out 1 bits of 2 primes");
    insta::assert_snapshot!(after(|plan| server(plan).parameters.reply_modulus += 8192),
        @"stage `conv`: replies modulo 67092481, which is no prime below 2^60 that is 1 modulo 8192");
    insta::assert_snapshot!(after(|plan| server(plan).parameters.reply_dropped_bits = 26),
        @"stage `conv`: replies of 26 bits that leave out 26");
    insta::assert_snapshot!(after(|plan| plan.key_sets[0].parameters.key_switching_prime = None),
        @"stage `conv`: rotations and merges need a key-switching prime");
}

#[test]
fn results_must_fit_the_plaintext_modulus() {
    insta::assert_snapshot!(after(|plan| server(plan).layer.output_ranges[1] = (-30_000, 20_000)),
        @"stage `conv`: results take 50001 values, the plaintext modulus is 40961");
}

#[test]
fn what_is_stated_must_be_what_is_counted() {
    insta::assert_snapshot!(after(|plan| {
        plan.key_sets[0].galois.pop();
    }));
    insta::assert_snapshot!(after(|plan| plan.key_sets[0].galois.push(9)));
    insta::assert_snapshot!(after(|plan| server(plan).cost.bytes_down -= 1));
    insta::assert_snapshot!(after(|plan| server(plan).budget.reply_bits += 0.5));
}

#[test]
fn noise_must_leave_a_budget() {
    insta::assert_snapshot!(after(|plan| {
        // Every prime of 24 bits below the first: enough for the result, not for its noise.
        plan.key_sets[0].parameters.ciphertext_primes = vec![16_760_833];
        let keys = plan.key_sets[0].parameters.clone();
        let stage = server(plan);
        let parameters = Parameters { keys, stage: stage.parameters };
        let layout = Layout::new(&stage.layer.operator, stage.packing, 4096).expect("it fits");
        let evaluation = Evaluation::new(&stage.layer, &layout);
        stage.cost = count(&parameters, &layout, &evaluation);
        stage.budget = estimate(&parameters, &evaluation.noise, EncryptionKey::Secret);
    }), @"stage `conv`: the estimated noise budget is -20.27 bits and must not be below 0");
}

#[test]
fn values_and_shapes_must_agree() {
    insta::assert_snapshot!(after(|plan| plan.output = ValueId(7)), @"output: value 7 is read before it is defined");
    insta::assert_snapshot!(after(|plan| server(plan).layer.output = ValueId(0)),
        @"stage `conv`: value 0 is defined twice");
    insta::assert_snapshot!(after(|plan| plan.input_shape = vec![1, 6, 7]),
        @"stage `conv`: it takes [1, 6, 6], the value is [1, 6, 7]");
    insta::assert_snapshot!(after(|plan| plan.input_shape = vec![usize::MAX, 2]),
        @"the plan's input has shape [18446744073709551615, 2]");
    insta::assert_snapshot!(after(|plan| {
        let Stage::Client(steps) = &mut plan.stages[1] else { unreachable!("the second stage is the client's") };
        steps[0].shape = vec![72];
    }), @"step `relu`: Relu turns [2, 6, 6] into [72]");
    insta::assert_snapshot!(after(|plan| server(plan).layer.quantizer.scale = f32::NAN), @"stage `conv`: a scale of NaN");
    insta::assert_snapshot!(after(|plan| server(plan).key_set = 1), @"stage `conv`: there is no key set 1");
    insta::assert_snapshot!(after(|plan| plan.weights.file = "../secret".to_owned()),
        @"`../secret` is not the plain name of a file beside the plan");
}
