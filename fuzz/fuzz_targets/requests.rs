//! libFuzzer on the requests of Redis clients.
#![no_main]

windrow_fuzz::fuzz_server!(check_requests);
