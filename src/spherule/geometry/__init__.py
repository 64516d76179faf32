"""What follows from grids alone, without data: harmonics, neighborhoods, stencils."""
