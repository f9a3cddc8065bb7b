//! Room `oci`.
