"""The sandbox layers, one module each: standard library only, for any interpreter from 3.9."""
