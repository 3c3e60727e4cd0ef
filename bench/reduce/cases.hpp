// cases.hpp (reduce) - the reductions that are measured.
#pragma once

namespace bench {

void histogram();
void mean();
void kmeans();
void moments();
void softmax();

// The sets of Ma and Agrawal (ICS 2009), figures 7 and 10; that of figure 13 is moments().
void figure7();
void figure10_e();
void figure10_m();

} // namespace bench
