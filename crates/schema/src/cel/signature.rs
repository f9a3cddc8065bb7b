//! Which functions exist and what they take.
//!
//! The functions of the language, its extensions and Kubernetes' libraries that rules can use
//! in version 1.36. Members have their receiver in front of the name.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::types::Type;

/// One way to call a function.
#[derive(Debug)]
pub(crate) struct Overload {
    pub(crate) member: bool,
    /// With the receiver first.
    pub(crate) takes: Vec<Type>,
    pub(crate) gives: Type,
}

/// Every function by name.
pub(crate) static FUNCTIONS: LazyLock<BTreeMap<&'static str, Vec<Overload>>> =
    LazyLock::new(|| {
        let mut all: BTreeMap<&'static str, Vec<Overload>> = BTreeMap::new();
        for line in TABLE.lines() {
            let mut words = line.split(' ');
            let (Some(how), Some(name), Some(gives)) = (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let takes = words.map(Type::parse).collect();
            let overload = Overload { member: how == "m", takes, gives: Type::parse(gives) };
            all.entry(name).or_default().push(overload);
        }
        all
    });

/// `f` function or `m` member, its name, what it gives, what it takes.
const TABLE: &str = "\
f _+_ int int int
f _+_ uint uint uint
f _+_ double double double
f _+_ string string string
f _+_ bytes bytes bytes
f _+_ list(A) list(A) list(A)
f _+_ timestamp timestamp duration
f _+_ timestamp duration timestamp
f _+_ duration duration duration
f _-_ int int int
f _-_ uint uint uint
f _-_ double double double
f _-_ duration timestamp timestamp
f _-_ timestamp timestamp duration
f _-_ duration duration duration
f _*_ int int int
f _*_ uint uint uint
f _*_ double double double
f _/_ int int int
f _/_ uint uint uint
f _/_ double double double
f _%_ int int int
f _%_ uint uint uint
f -_ int int
f -_ double double
f !_ bool bool
f _==_ bool A A
f _!=_ bool A A
f @in bool A list(A)
f @in bool A map(A,B)
f size int string
f size int bytes
f size int list(A)
f size int map(A,B)
m size int string
m size int bytes
m size int list(A)
m size int map(A,B)
f type type(A) A
f dyn dyn A
f bool bool bool
f bool bool string
f bytes bytes bytes
f bytes bytes string
f double double double
f double double int
f double double uint
f double double string
f int int int
f int int uint
f int int double
f int int string
f int int timestamp
f int int duration
f uint uint uint
f uint uint int
f uint uint double
f uint uint string
f string string string
f string string bool
f string string int
f string string uint
f string string double
f string string bytes
f string string timestamp
f string string duration
f string string ip
f string string cidr
f timestamp timestamp timestamp
f timestamp timestamp string
f timestamp timestamp int
f duration duration duration
f duration duration string
f duration duration int
m contains bool string string
m startsWith bool string string
m endsWith bool string string
m matches bool string string
f matches bool string string
m getFullYear int timestamp
m getFullYear int timestamp string
m getMonth int timestamp
m getMonth int timestamp string
m getDayOfYear int timestamp
m getDayOfYear int timestamp string
m getDayOfMonth int timestamp
m getDayOfMonth int timestamp string
m getDate int timestamp
m getDate int timestamp string
m getDayOfWeek int timestamp
m getDayOfWeek int timestamp string
m getHours int timestamp
m getHours int timestamp string
m getHours int duration
m getMinutes int timestamp
m getMinutes int timestamp string
m getMinutes int duration
m getSeconds int timestamp
m getSeconds int timestamp string
m getSeconds int duration
m getMilliseconds int timestamp
m getMilliseconds int timestamp string
m getMilliseconds int duration
m charAt string string int
m indexOf int string string
m indexOf int string string int
m indexOf int list(A) A
m lastIndexOf int string string
m lastIndexOf int string string int
m lastIndexOf int list(A) A
m join string list(string)
m join string list(string) string
m lowerAscii string string
m upperAscii string string
m replace string string string string
m replace string string string string int
m split list(string) string string
m split list(string) string string int
m substring string string int
m substring string string int int
m trim string string
m format string string list(dyn)
f strings.quote string string
m find string string string
m findAll list(string) string string
m findAll list(string) string string int
f sets.contains bool list(A) list(A)
f sets.equivalent bool list(A) list(A)
f sets.intersects bool list(A) list(A)
m isSorted bool list(int)
m isSorted bool list(uint)
m isSorted bool list(double)
m isSorted bool list(bool)
m isSorted bool list(duration)
m isSorted bool list(timestamp)
m isSorted bool list(string)
m isSorted bool list(bytes)
m sum int list(int)
m sum uint list(uint)
m sum double list(double)
m sum duration list(duration)
m max int list(int)
m max uint list(uint)
m max double list(double)
m max bool list(bool)
m max duration list(duration)
m max timestamp list(timestamp)
m max string list(string)
m max bytes list(bytes)
m min int list(int)
m min uint list(uint)
m min double list(double)
m min bool list(bool)
m min duration list(duration)
m min timestamp list(timestamp)
m min string list(string)
m min bytes list(bytes)
m slice list(A) list(A) int int
m flatten list(dyn) list(list(A))
m flatten list(dyn) list(dyn)
m flatten list(dyn) list(dyn) int
f lists.range list(int) int
m distinct list(A) list(A)
m reverse list(A) list(A)
m sort list(A) list(A)
m first optional(A) list(A)
m last optional(A) list(A)
f optional.of optional(A) A
f optional.ofNonZeroValue optional(A) A
f optional.none optional(A)
m value A optional(A)
m hasValue bool optional(A)
m or optional(A) optional(A) optional(A)
m orValue A optional(A) A
f optional.unwrap list(A) list(optional(A))
m unwrapOpt list(A) list(optional(A))
f url url string
f isURL bool string
m getScheme string url
m getHost string url
m getHostname string url
m getPort string url
m getEscapedPath string url
m getQuery map(string,list(string)) url
f ip ip string
m ip ip cidr
f isIP bool string
f ip.isCanonical bool string
m family int ip
m isUnspecified bool ip
m isLoopback bool ip
m isLinkLocalMulticast bool ip
m isLinkLocalUnicast bool ip
m isGlobalUnicast bool ip
f cidr cidr string
f isCIDR bool string
m containsIP bool cidr string
m containsIP bool cidr ip
m containsCIDR bool cidr string
m containsCIDR bool cidr cidr
m prefixLength int cidr
m masked cidr cidr
f quantity quantity string
f isQuantity bool string
f sign int quantity
m isGreaterThan bool quantity quantity
m isGreaterThan bool semver semver
m isLessThan bool quantity quantity
m isLessThan bool semver semver
m compareTo int quantity quantity
m compareTo int semver semver
m asApproximateFloat double quantity
m asInteger int quantity
m isInteger bool quantity
m add quantity quantity quantity
m add quantity quantity int
m sub quantity quantity quantity
m sub quantity quantity int
f semver semver string
f semver semver string bool
f isSemver bool string
f isSemver bool string bool
m major int semver
m minor int semver
m patch int semver
f format.named optional(format) string
f format.dns1123Label format
f format.dns1123Subdomain format
f format.dns1035Label format
f format.qualifiedName format
f format.dns1123LabelPrefix format
f format.dns1123SubdomainPrefix format
f format.dns1035LabelPrefix format
f format.labelValue format
f format.uri format
f format.uuid format
f format.byte format
f format.date format
f format.datetime format
m validate optional(list(string)) format string
f _<_ bool bool bool
f _<_ bool int int
f _<_ bool int uint
f _<_ bool int double
f _<_ bool uint uint
f _<_ bool uint int
f _<_ bool uint double
f _<_ bool double double
f _<_ bool double int
f _<_ bool double uint
f _<_ bool string string
f _<_ bool bytes bytes
f _<_ bool timestamp timestamp
f _<_ bool duration duration
";

/// The comparisons that take what `_<_` takes.
pub(crate) const LIKE_LESS: [&str; 3] = ["_<=_", "_>_", "_>=_"];

/// How a function may be called.
pub(crate) fn overloads(name: &str) -> Option<&'static [Overload]> {
    let name = if LIKE_LESS.contains(&name) { "_<_" } else { name };
    FUNCTIONS.get(name).map(Vec::as_slice)
}
