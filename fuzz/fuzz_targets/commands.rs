//! libFuzzer on the commands of Redis clients: any bytes.
#![no_main]

windrow_fuzz::fuzz_server!(check_commands);
