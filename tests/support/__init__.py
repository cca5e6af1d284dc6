"""What tests of several lanes share: commands, markets, pages, disks and ranks to try things on."""
