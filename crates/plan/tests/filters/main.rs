//! Filter memory: the solver against brute force, the trees of the papers, and
//! Merlin's estimates against a replay of the same queries.

mod merlin;
mod plan;
mod solver;
