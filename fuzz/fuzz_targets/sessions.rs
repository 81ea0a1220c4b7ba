//! libFuzzer on sessions of Redis clients, against the model.
#![no_main]

windrow_fuzz::fuzz_server!(check_session);
