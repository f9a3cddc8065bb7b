//! The words of `apron registry`.

use super::limit::LimitArguments;
use super::mirror::MirrorArguments;
use crate::command::registry::{Request, exchange, keep, password, serve, tls, user};
use crate::output::Format;
use ::registry::auth::Mode;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

/// What can be done with a registry of one's own.
#[derive(Subcommand)]
pub(super) enum RegistryWords {
    /// Serve a directory as a registry
    Serve(Box<ServeArguments>),
    /// Remove what no tag or manifest refers to (a running registry does this by itself)
    Gc(GcArguments),
    /// Read every blob again, and take damaged ones out of service
    Scrub(KeepArguments),
    /// Make the database again from the repositories on the disk
    Rebuild(KeepArguments),
    /// Take an OCI layout directory into a repository
    Import {
        /// OCI layout directory
        layout: PathBuf,
        /// Repository to take it into, without a registry
        repository: String,
        #[command(flatten)]
        keep: KeepArguments,
    },
    /// Write a repository as an OCI layout directory that needs nothing else
    Export {
        /// Repository to write, without a registry
        repository: String,
        /// OCI layout directory to write
        layout: PathBuf,
        #[command(flatten)]
        keep: KeepArguments,
    },
    /// Print the password of the registry that `apron up` runs, for user `apron`
    Password {
        /// Kubeconfig of the control plane [default: those of KUBECONFIG, or ~/.kube/config]
        #[arg(long, value_name = "FILE")]
        kubeconfig: Option<PathBuf>,
        /// Context of the kubeconfig to use [default: its current one]
        #[arg(long, value_name = "NAME")]
        context: Option<String>,
    },
    /// Say who may sign in to a registry, and what they may do
    User {
        #[command(flatten)]
        keep: KeepArguments,
        #[command(subcommand)]
        words: UserWords,
    },
}

/// Who may sign in, and what they may do.
#[derive(Subcommand)]
pub(super) enum UserWords {
    /// Add a user, or change a password; it is read from standard input, or asked for
    Add {
        /// Name of the user
        name: String,
    },
    /// Make a key for a user (who may be new) and print it, this once
    Key {
        /// Name of the user
        name: String,
        /// What to call the key; a key with the same label is replaced
        #[arg(long, default_value = "default")]
        label: String,
        /// Days after which the key is no longer good
        #[arg(long, value_name = "DAYS")]
        expires: Option<u64>,
        /// Repositories the key is good for, of those its owner may use: `team/*`, `team/**`
        #[arg(long, value_name = "PATTERN")]
        repositories: Option<String>,
        /// What the key is good for, of what its owner may do: pull, push, delete, admin
        #[arg(long, value_name = "WORDS")]
        actions: Option<String>,
    },
    /// Remove a user with all keys, or only a key; rules stay, so that nothing opens by itself
    Remove {
        /// Name of the user
        name: String,
        /// Remove only the key of this label
        #[arg(long, value_name = "LABEL")]
        key: Option<String>,
    },
    /// Allow something; repositories that any rule covers are open to those it is for only
    Allow {
        /// Name of a user, `*` for all users, or `anonymous`
        who: String,
        /// Repositories: `team/*` for those directly below, `team/**` for all
        repositories: String,
        /// Words with commas between them: pull, push, delete, admin
        actions: String,
    },
    /// Take back what was allowed
    Forbid {
        /// Who the rule is for
        who: String,
        /// The repositories as the rule has them
        repositories: String,
    },
    /// List users and rules
    List,
}

#[derive(Args)]
struct DataArguments {
    /// Directory that holds the registry [default: apron-registry]
    #[arg(long, global = true, env = "APRON_REGISTRY_DATA", value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl DataArguments {
    fn directory(self) -> PathBuf {
        self.data_dir.unwrap_or_else(|| "apron-registry".into())
    }
}

#[derive(Args)]
pub(super) struct KeepArguments {
    #[command(flatten)]
    data: DataArguments,
    /// Form of the result
    #[arg(long, short, global = true, value_enum, default_value_t)]
    output: Format,
}

#[derive(Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(super) struct ServeArguments {
    #[command(flatten)]
    data: DataArguments,
    /// Address and port to listen on; port 0 means any that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:5000")]
    listen: String,
    /// Let anybody who can reach it push and delete, also from other machines
    #[arg(long)]
    insecure_open: bool,
    /// Let nobody do anything without signing in
    #[arg(long, conflicts_with = "insecure_open")]
    private: bool,
    /// Name of the registry beside its address: answered to while nobody is asked who they are, and
    /// told to clients that call it so; `*` is any. May be repeated
    #[arg(long, value_name = "NAME")]
    allowed_host: Vec<String>,
    /// Also let the users of this htpasswd file sign in (bcrypt entries only)
    #[arg(long, value_name = "FILE")]
    htpasswd: Option<PathBuf>,
    /// Address at which clients reach the registry, if it is another than it listens on
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Let robots sign in with tokens of the issuers in this JSON file (`OpenID` Connect)
    #[arg(long, value_name = "FILE")]
    oidc: Option<PathBuf>,
    /// Also trust the certificate authorities in this PEM file for those issuers
    #[arg(long, value_name = "FILE", requires = "oidc")]
    oidc_ca_file: Option<PathBuf>,
    /// Megabytes of the audit log after which a new one is begun; five old ones are kept
    #[arg(long, value_name = "MB", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..))]
    audit_size: u64,
    /// Believe X-Forwarded-For of this proxy, or of all in a network (10.0.0.0/8); may be repeated
    #[arg(long, value_name = "ADDRESS")]
    trusted_proxy: Vec<String>,
    /// Certificate with its chain in PEM form; read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Key of the certificate in PEM form
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Let tags that are versions (v1.2.3) be pushed again with other content
    #[arg(long)]
    mutable_versions: bool,
    /// Accept manifests that name blobs which are not there, as partial mirrors need
    #[arg(long)]
    allow_missing: bool,
    /// Megabytes of the disk that pushes must leave free
    #[arg(long, value_name = "MB", default_value_t = 256)]
    reserve: u64,
    /// Seconds a blob that nothing refers to is safe after a client has seen it
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    lease: u64,
    /// Seconds between two garbage collections; 0 means never
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    gc_interval: u64,
    #[command(flatten)]
    mirror: MirrorArguments,
    #[command(flatten)]
    limit: LimitArguments,
}

#[derive(Args)]
pub(super) struct GcArguments {
    #[command(flatten)]
    keep: KeepArguments,
    /// Also remove manifests that have had no tag for this many days
    #[arg(long, value_name = "DAYS")]
    untagged_after: Option<u64>,
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
    /// Also remove what clients have seen within the lease; pushes under way may have to begin again
    #[arg(long)]
    ignore_lease: bool,
}

impl RegistryWords {
    /// What was asked for.
    pub(super) fn into_request(self) -> Request {
        match self {
            Self::Serve(words) => Request::Serve(Box::new(words.into_request())),
            Self::Gc(words) => Request::Collect(keep::Collect {
                directory: words.keep.data.directory(),
                untagged_after: words
                    .untagged_after
                    .map(|days| Duration::from_secs(days.saturating_mul(86_400))),
                dry_run: words.dry_run,
                ignore_lease: words.ignore_lease,
                format: words.keep.output,
            }),
            Self::Scrub(words) => Request::Scrub(keep::Scrub {
                directory: words.data.directory(),
                format: words.output,
            }),
            Self::Rebuild(words) => Request::Rebuild(keep::Rebuild {
                directory: words.data.directory(),
                format: words.output,
            }),
            Self::Import { layout, repository, keep } => Request::Import(exchange::Import {
                directory: keep.data.directory(),
                layout,
                repository,
                format: keep.output,
            }),
            Self::Export { repository, layout, keep } => Request::Export(exchange::Export {
                directory: keep.data.directory(),
                repository,
                layout,
                format: keep.output,
            }),
            Self::Password { kubeconfig, context } => {
                Request::Password(password::Request { kubeconfig, context })
            }
            Self::User { keep, words } => Request::User(user::Request {
                is_named: keep.data.data_dir.is_some(),
                directory: keep.data.directory(),
                change: words.into_change(),
                format: keep.output,
            }),
        }
    }
}

impl UserWords {
    fn into_change(self) -> user::Change {
        match self {
            Self::Add { name } => user::Change::Add { name },
            Self::Key { name, label, expires, repositories, actions } => {
                user::Change::Key { name, label, expires, repositories, actions }
            }
            Self::Remove { name, key } => user::Change::Remove { name, key },
            Self::Allow { who, repositories, actions } => {
                user::Change::Allow { who, repositories, actions }
            }
            Self::Forbid { who, repositories } => user::Change::Forbid { who, repositories },
            Self::List => user::Change::List,
        }
    }
}

impl ServeArguments {
    fn into_request(self) -> serve::Request {
        let files = |(certificate, key)| tls::Files { certificate, key };
        serve::Request {
            directory: self.data.directory(),
            listen: self.listen,
            insecure_open: self.insecure_open,
            allowed_hosts: self.allowed_host,
            mode: if self.private { Mode::Private } else { Mode::Public },
            htpasswd: self.htpasswd,
            public_url: self.public_url,
            tls: self.tls_cert.zip(self.tls_key).map(files),
            mutable_versions: self.mutable_versions,
            allow_missing: self.allow_missing,
            space_reserve: self.reserve.saturating_mul(1_000_000),
            lease: Duration::from_secs(self.lease),
            gc_interval: Duration::from_secs(self.gc_interval),
            mirror: self.mirror.into_request(),
            limits: self.limit.into_limits(),
            oidc: self.oidc,
            oidc_ca_file: self.oidc_ca_file,
            audit_size_max: self.audit_size.saturating_mul(1_000_000),
            trusted_proxies: self.trusted_proxy,
        }
    }
}
