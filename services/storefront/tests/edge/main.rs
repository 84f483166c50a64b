//! The storefront as it is met from outside: the real service on a real socket, between real HTTP
//! clients and stand-ins for catalog and orders that can be told to fail, hang and die.

mod browser;
mod deadlines;
mod doors;
mod faults;
mod json_door;
mod neighbours;
mod purchase;
mod shop;
