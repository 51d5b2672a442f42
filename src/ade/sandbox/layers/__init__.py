"""The layers, each in a module of its own: standard library only, for any interpreter from 3.9."""
