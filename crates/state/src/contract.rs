//! The contract of a state store, runnable.
