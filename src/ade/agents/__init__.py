"""Workers on other hosts: how engines start them."""
