-- All files of the library, in an order in which each one finds what it needs.
load "./rings.m2";
load "./networks.m2";
load "./images.m2";
load "./primes.m2";
load "./strata.m2";
load "./fibers.m2";
load "./critical-points.m2";
load "./jets.m2";
load "./programs.m2";
