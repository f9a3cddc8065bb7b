//! What was measured of the real package, of all its definitions (sizes, groups) or of 120 chosen at
//! random (the rest). Points are `(permille, value)`.

/// Definitions in the package.
pub const COUNT: usize = 2065;

/// API groups among them.
pub const GROUPS: usize = 354;

/// Bytes of a definition's YAML. The last point is one definition of 1.7 MB.
pub const SIZES: [(usize, usize); 10] = [
    (0, 3_174),
    (100, 14_303),
    (250, 20_166),
    (500, 28_229),
    (750, 46_612),
    (900, 96_420),
    (950, 158_453),
    (990, 353_759),
    (999, 900_000),
    (1000, 1_692_444),
];

/// Of a thousand definitions, how many have a second, deprecated version.
pub const DEPRECATED_PERMILLE: usize = 117;

/// How deep schemas go, from the root of a version to its deepest field.
pub const DEPTHS: [(usize, usize); 6] =
    [(0, 4), (250, 5), (500, 5), (750, 7), (900, 9), (1000, 10)];

/// Fields of an object.
pub const FIELDS: [(usize, usize); 7] =
    [(0, 1), (100, 2), (500, 3), (750, 4), (900, 6), (990, 22), (1000, 60)];

/// Characters of a description.
pub const DESCRIPTIONS: [(usize, usize); 8] =
    [(0, 3), (100, 25), (250, 41), (500, 85), (750, 188), (900, 244), (990, 613), (1000, 791)];

/// Types of fields, each with its share of a thousand.
pub const TYPES: [(&str, usize); 6] = [
    ("string", 547),
    ("object", 292),
    ("array", 63),
    ("boolean", 56),
    ("number", 26),
    ("integer", 16),
];

/// Of a thousand versions, how many have rules in CEL, and how many rules those have.
pub const RULES_PERMILLE: usize = 650;
/// Rules of a version that has any.
pub const RULES: [(usize, usize); 4] = [(0, 1), (750, 2), (950, 4), (1000, 6)];
