//! Every limit of the room, by name.

use std::time::Duration;

/// The longest path or query that is looked at.
pub const TARGET_LENGTH_MAX: usize = 8 << 10;
/// The largest manifest that is taken.
pub const MANIFEST_SIZE_MAX: usize = 4 << 20;
/// The most descriptors one manifest may have.
pub const DESCRIPTORS_MAX: usize = 10_000;
/// The largest blob that is taken, unless told otherwise.
pub const BLOB_SIZE_MAX: u64 = 64 << 30;
/// The most tags one push of a manifest by digest may set.
pub const TAGS_PER_PUSH_MAX: usize = 64;
/// The longest list of tags or repositories in one answer.
pub const PAGE_LENGTH_MAX: usize = 10_000;
/// How many repositories one answer lists unless asked for another number.
pub const CATALOG_PAGE_LENGTH: usize = 1000;
/// How many referrers one answer lists.
pub const REFERRERS_PAGE_LENGTH: usize = 1000;
/// How large the descriptors of one page of referrers may become together.
pub const REFERRERS_PAGE_SIZE: usize = 3 << 20;
/// The most uploads under way at once.
pub const UPLOADS_MAX: usize = 10_000;
/// The most of them that one user may have, or everybody without a name at one address.
pub const UPLOADS_PER_HOLDER_MAX: usize = 500;
/// Those that only mirrors may have.
pub const UPLOADS_RESERVED: usize = 1000;
/// How long an upload may lie untouched.
pub const UPLOAD_AGE_MAX: Duration = Duration::from_secs(24 * 3600);
/// How long an upload may be without a single byte.
pub const UPLOAD_EMPTY_AGE_MAX: Duration = Duration::from_secs(10 * 60);
/// The shortest pause between two looks at which uploads are over, when there are too many.
pub const UPLOADS_SWEEP_PAUSE: Duration = Duration::from_secs(1);
/// How long a client may send nothing in the middle of a body.
pub const BODY_SILENCE_MAX: Duration = Duration::from_secs(60);
/// Bytes a second a client must send in the long run, unless told otherwise.
pub const UPLOAD_RATE_MIN: u64 = 1 << 10;
/// How long a client is waited for before it is judged by how much it sent.
pub const BODY_RATE_WINDOW: Duration = Duration::from_secs(30);
/// How much of a body is gathered before it is hashed and written.
pub const WRITE_SIZE: usize = 512 << 10;
/// Blocks of that size kept for the next writes.
pub const WRITE_BLOCKS_IDLE: usize = 4;
/// How much of a blob is read at once.
pub const READ_SIZE: usize = 256 << 10;
/// Buffers of that size kept for the next reads.
pub const READ_BUFFERS_IDLE: usize = 16;
/// How much is written between two looks at the free space.
pub const SPACE_CHECK_INTERVAL: u64 = 64 << 20;
/// Manifests kept in memory, in bytes.
pub const CACHE_SIZE_MAX: usize = 8 << 20;
/// The largest manifest kept in memory.
pub const CACHE_ENTRY_SIZE_MAX: usize = 256 << 10;
/// Database connections that read at once.
pub const READERS_MAX: usize = 4;
/// Changes that are made durable together.
pub const GROUP_COMMIT_MAX: usize = 128;
/// Events an observer may fall behind before it misses some.
pub const EVENTS_WAITING_MAX: usize = 4096;
/// The shortest pause between two rewrites of the views.
pub const VIEW_INTERVAL: Duration = Duration::from_secs(1);
/// Blobs fetched at once from one mirrored registry.
pub const MIRROR_FETCHES_MAX: usize = 64;
/// Blobs one step of a collection looks at.
pub const COLLECT_BATCH: usize = 500;
