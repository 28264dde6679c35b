//! The client of the CHOCO paper, on the kernels of this project: what it does for the same network.

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use chococ_plans::check::{CheckedPlan, CheckedStage};
use chococ_plans::cost::packed_bytes;
use chococ_plans::eval;
use chococ_plans::packing::layout::Layout;
use chococ_plans::packing::modulo::reduce_codes;
use chococ_plans::packing::moves::Moves;
use chococ_plans::packing::{Alignment, Packing, SlotPacking, TapOrder};
use chococ_plans::params::{KeyParameters, Parameters, StageParameters};
use chococ_plans::primes::{ntt_primes_below, ntt_primes_from};
use chococ_runtime::ChaCha20;
use chococ_runtime::bfv::ciphertext::Ciphertext;
use chococ_runtime::bfv::context::Context;
use chococ_runtime::bfv::decrypt::decrypt;
use chococ_runtime::bfv::encrypt::encrypt_public;
use chococ_runtime::bfv::keys::{PublicKey, SecretKey};
use chococ_runtime::math::bits;
use chococ_runtime::reference::Integers;

/// The paper's ring degree, the bits of its ciphertext primes and of its special prime, and of its plaintext modulus.
const PAPER: (usize, [u32; 2], u32, u32) = (8192, [58, 58], 59, 23);

/// One stage in the paper's way.
pub struct PaperStage<'a> {
    stage: CheckedStage<'a>,
    /// What the client is about to quantise.
    input: Vec<f32>,
    /// Ciphertexts that it sends.
    inputs: usize,
    moves: Moves,
    context: Context,
    secret: SecretKey,
    public: PublicKey,
    replies: Vec<Vec<u8>>,
}

/// Prepares the client of the paper for the integers of an inference.
pub fn prepare<'a>(plan: &'a CheckedPlan, integers: &[Integers]) -> Result<Vec<PaperStage<'a>>, Box<dyn Error>> {
    plan.server_stages().zip(integers).map(|(stage, integers)| prepare_stage(stage, integers)).collect()
}

/// Measures all that this client does; operators in the clear are not included.
pub fn run(stages: &[PaperStage<'_>]) -> Duration {
    let mut rng: ChaCha20 = rand::make_rng();
    let begun = Instant::now();
    stages.iter().for_each(|stage| walk(stage, &mut rng));
    begun.elapsed()
}

fn prepare_stage<'a>(stage: CheckedStage<'a>, integers: &Integers) -> Result<PaperStage<'a>, Box<dyn Error>> {
    let (ring_degree, bits, special_bits, plaintext_bits) = PAPER;
    let layer = &stage.stage.layer;
    let packing = SlotPacking { alignment: Alignment::Rotational, taps: TapOrder::Inputs, baby_shifts: 1 };
    let layout = Layout::new(&layer.operator, Packing::Slots(packing), ring_degree)?;
    let primes = |bits| ntt_primes_below(bits, ring_degree);
    let ciphertext_primes: Vec<u64> = primes(bits[0]).take(bits.len()).collect();
    let plaintext_modulus = ntt_primes_from(layer.width().max(1 << (plaintext_bits - 1)), ring_degree).next();
    let keys = KeyParameters {
        ring_degree,
        ciphertext_primes,
        key_switching_prime: primes(special_bits).next(),
        digit_bits: bits[0],
    };
    let stage_parameters = StageParameters {
        plaintext_modulus: plaintext_modulus.ok_or("primes do not end")?,
        request_dropped_bits: 0,
        reply_modulus: primes(30).next().ok_or("there are some")?,
        reply_dropped_bits: 0,
    };
    let context = Context::new(&Parameters { keys, stage: stage_parameters })?;
    let mut rng: ChaCha20 = rand::make_rng();
    let secret = SecretKey::generate(&context, &mut rng);
    let public = PublicKey::generate(&context, &secret, &mut rng);
    // What they decrypt to makes no difference to the work.
    let encoder = context.encoder().ok_or("the plaintext modulus has a transform")?;
    let zeros = encoder.encode(&vec![0; ring_degree]);
    let mut reply = |_| {
        let mut bytes = Vec::new();
        append(&mut bytes, &context, &encrypt_public(&context, &public, &zeros, &mut rng));
        bytes
    };
    let replies = (0..layout.outputs()).map(&mut reply).collect();
    let input = integers.codes.iter().map(|&code| code as f32 * layer.quantizer.scale).collect();
    let (moves, inputs) = (Moves::new(&layout), layout.inputs());
    Ok(PaperStage { stage, input, inputs, moves, context, secret, public, replies })
}

/// Quantises, packs, encodes, encrypts, writes; reads, decrypts, decodes, unpacks, scales: one ciphertext after the
/// other, as the client of this project does.
fn walk(paper: &PaperStage<'_>, rng: &mut ChaCha20) {
    let PaperStage { stage, input, inputs, moves, context, secret, public, replies } = paper;
    let layer = &stage.stage.layer;
    let encoder = context.encoder().expect("it was used to prepare the replies");
    let t = context.plaintext_modulus();
    let codes = eval::quantize(&layer.quantizer, input);
    let codes = reduce_codes(&codes, t);
    let mut slots = vec![0; context.ring_degree()];
    let mut plaintext = encoder.encode(&slots);
    let mut request = Vec::with_capacity(inputs * replies.first().map_or(0, Vec::len));
    for input in 0..*inputs {
        moves.pack(input, &codes, t, &mut slots);
        encoder.encode_into(&slots, &mut plaintext);
        append(&mut request, context, &encrypt_public(context, public, &plaintext, rng));
    }
    black_box(request);
    let mut sums = vec![0; layer.operator.output_shape().iter().product()];
    let mut reply = Ciphertext::zero(context, context.top_level());
    for (output, bytes) in replies.iter().enumerate() {
        read(context, bytes, &mut reply);
        moves.unpack(output, &encoder.decode(&decrypt(context, secret, &reply)), t, &mut sums);
    }
    black_box(eval::dequantize_residues(layer, t, &mut sums));
}

/// Writes a ciphertext as this project writes numbers: each residue at the width of its prime.
fn append(bytes: &mut Vec<u8>, context: &Context, ciphertext: &Ciphertext) {
    for poly in [&ciphertext.c0, &ciphertext.c1] {
        for (residue, modulus) in poly.residues().zip(context.ring().moduli()) {
            let begin = bytes.len();
            let length = packed_bytes(residue.len(), modulus.bits());
            bytes.resize(begin + length + bits::SLACK, 0);
            bits::pack(residue, modulus.bits(), &mut bytes[begin..]);
            bytes.truncate(begin + length);
        }
    }
}

/// Reads what [`append`] wrote, and checks it as a message from a stranger is checked.
fn read(context: &Context, bytes: &[u8], ciphertext: &mut Ciphertext) {
    let mut rest = bytes;
    for poly in [&mut ciphertext.c0, &mut ciphertext.c1] {
        for (residue, modulus) in poly.residues_mut().zip(context.ring().moduli()) {
            let packed = rest.split_off(..packed_bytes(residue.len(), modulus.bits())).expect("it was written in full");
            bits::unpack(packed, modulus.bits(), modulus.value(), residue).expect("they are residues");
        }
    }
}
