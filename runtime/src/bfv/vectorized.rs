//! Loops compiled again with wider registers.

/// Defines a function whose loops the compiler may vectorise with what the machine has, found at run time.
///
/// The body is plain Rust, compiled once as it is, once for AVX2 and once for AVX-512; results are the same by
/// construction. Worth it for loops over whole polynomials only. 64-bit products do not vectorise unless their factors
/// are visibly below 2^32.
macro_rules! vectorized {
    ($(#[$attribute:meta])* $visibility:vis fn $name:ident($($argument:ident: $kind:ty),* $(,)?) $body:block) => {
        $(#[$attribute])*
        #[cfg_attr(
            target_arch = "x86_64",
            expect(unsafe_code, reason = "calling a function compiled for instructions that were just detected")
        )]
        $visibility fn $name($($argument: $kind),*) {
            #[inline(always)]
            fn portable($($argument: $kind),*) $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
                fn with_avx512($($argument: $kind),*) {
                    portable($($argument),*);
                }
                #[target_feature(enable = "avx2")]
                fn with_avx2($($argument: $kind),*) {
                    portable($($argument),*);
                }
                let avx512 = is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl");
                if avx512 {
                    // SAFETY: the three features it is compiled for were detected.
                    return unsafe { with_avx512($($argument),*) };
                }
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: AVX2 was detected.
                    return unsafe { with_avx2($($argument),*) };
                }
            }
            portable($($argument),*);
        }
    };
}

pub(super) use vectorized;
