//! Nothing is built here; the tests keep the gRPC wire as it must be.
