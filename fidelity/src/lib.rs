//! Berth's kernel model held against records of real kernels: where they put real tasks, and what domains they had
//! built.
//!
//! A [`record::Record`] is one boot of one kernel. Four questions are put to each, from the strictest to the loosest:
//! [`domains`] (are they the kernel's own?), [`steps`] (given what the kernel had done so far, was its next choice one
//! that the model allows?), [`free`] (does a burst, predicted at once, come out alike?) and [`proofs`] (did anything pile
//! up that would have been called safe?). `docs/fidelity.md` tells what each figure means and explains what is left.

pub mod domains;
pub mod free;
pub mod proofs;
pub mod record;
pub mod report;
pub mod scene;
pub mod settling;
pub mod steps;
pub mod track;
