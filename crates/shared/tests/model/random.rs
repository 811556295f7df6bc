//! The generator of Python's `random` module (MT19937), so that a seed means the same schedule here and in the model.

/// Matsumoto and Nishimura's Mersenne Twister, seeded and read as
/// [CPython does](https://github.com/python/cpython/blob/v3.13.0/Modules/_randommodule.c).
pub(crate) struct Random {
    state: Box<[u32; N]>,
    next: usize,
}

const N: usize = 624;
const M: usize = 397;

impl Random {
    /// As `random.Random(seed)`.
    pub(crate) fn new(seed: u32) -> Self {
        let mut state = Box::new([0_u32; N]);
        state[0] = 19_650_218;
        for i in 1..N {
            state[i] = 1_812_433_253_u32
                .wrapping_mul(state[i - 1] ^ (state[i - 1] >> 30))
                .wrapping_add(u32::try_from(i).unwrap());
        }
        // `init_by_array` with the one word of the seed.
        let mut i = 1;
        for _ in 0..N {
            let previous = state[i - 1] ^ (state[i - 1] >> 30);
            state[i] = (state[i] ^ previous.wrapping_mul(1_664_525)).wrapping_add(seed);
            i += 1;
            if i == N {
                state[0] = state[N - 1];
                i = 1;
            }
        }
        for _ in 0..N - 1 {
            let previous = state[i - 1] ^ (state[i - 1] >> 30);
            state[i] =
                (state[i] ^ previous.wrapping_mul(1_566_083_941)).wrapping_sub(u32::try_from(i).unwrap());
            i += 1;
            if i == N {
                state[0] = state[N - 1];
                i = 1;
            }
        }
        state[0] = 0x8000_0000;
        Self { state, next: N }
    }

    fn word(&mut self) -> u32 {
        if self.next == N {
            for i in 0..N {
                let y = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % N] & 0x7fff_ffff);
                let twist = if y & 1 == 0 { 0 } else { 0x9908_b0df };
                self.state[i] = self.state[(i + M) % N] ^ (y >> 1) ^ twist;
            }
            self.next = 0;
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    /// As `random()`: in 0 to 1, with 53 bits.
    pub(crate) fn unit(&mut self) -> f64 {
        let (high, low) = (self.word() >> 5, self.word() >> 6);
        (f64::from(high) * 67_108_864.0 + f64::from(low)) / 9_007_199_254_740_992.0
    }

    /// As `randrange(n)`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        let n = u32::try_from(n).unwrap();
        let bits = n.ilog2() + 1;
        loop {
            let value = self.word() >> (32 - bits);
            if value < n {
                return value as usize;
            }
        }
    }

    /// As `choice(items)`.
    pub(crate) fn choice<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

#[test]
fn draws_what_python_draws() {
    // `r = random.Random(1); [r.randrange(1000), r.randrange(7), r.choice("abc"), r.random()]`
    let mut r = Random::new(1);
    assert_eq!(
        (r.below(1000), r.below(7), *r.choice(&["a", "b", "c"])),
        (137, 4, "a")
    );
    assert!((r.unit() - 0.255_069_025_739_421_7).abs() < 1e-16);
}
