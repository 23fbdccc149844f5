//! The simulator, as the interface has the service.

mod interface;
