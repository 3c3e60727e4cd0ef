-- The pictures of the README, from the demo's tables s1 and iris: into build/demo. docs/img holds copies.
\pset format unaligned
\pset tuples_only on
\o build/demo/clusters.svg
SELECT kmeans_plot('s1', features => '{x,y}', k => 15, options => kmeans_options(n_init => 10), sample => 2500, title => 'S1: 15 clusters');
\o build/demo/components.svg
SELECT kmeans_plot('iris', features => '{sepal_length,sepal_width,petal_length,petal_width}', k => 3, options => kmeans_options(n_init => 10),
                   title => 'Iris: four measures in two principal components');
\o build/demo/sweep.svg
SELECT kmeans_sweep_plot('s1', features => '{x,y}', k_min => 1, k_max => 24, options => kmeans_options(refine => true), title => 'S1: how many clusters?');
\o build/demo/profile.svg
SELECT kmeans_profile_plot(kmeans_fit('iris', features => '{sepal_length,sepal_width,petal_length,petal_width,species}', k => 3, options => kmeans_options(standardize => true, n_init => 10)),
                           title => 'Iris: what tells the clusters apart');
\o
\pset tuples_only off
\pset format aligned
