#!/bin/bash
# PCA and Gaussian mixtures beside scikit-learn's, on the sets that come with it and on larger ones where they are.
# PYTHON names an interpreter that has scikit-learn; without one there is nothing to compare.
python=${PYTHON:-python3}
if ! "$python" -c 'import sklearn' 2>/dev/null; then
    echo "1..0 # SKIP no scikit-learn"
    exit 0
fi
exec "$python" "$(dirname "$0")/../support/compare_sklearn.py"
