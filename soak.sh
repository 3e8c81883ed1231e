#!/bin/sh
# usage: sh soak.sh PROCESSES SECONDS  -> $OUT/soak.csv, $OUT/dynamics_soak.md; run in the repository root.
# An existing $PWD/soak-before.csv is gone on from.
export PYTHONPATH=$HOME/w:$PWD/src:$PWD/tests:$PWD OPENBLAS_NUM_THREADS=1 PYTHONUNBUFFERED=1 CUDA_VISIBLE_DEVICES=
export TANGERE_SOAK=$OUT/soak.csv TANGERE_SOAK_PROCESSES=$1 TANGERE_SOAK_SECONDS=$2
[ -f soak-before.csv ] && cp soak-before.csv "$TANGERE_SOAK"
time python3 -m bench dynamics_soak
cp docs/benchmarks/dynamics_soak.md "$OUT/"; tail -n +2 "$TANGERE_SOAK" | wc -l
awk -F, 'NR>1{n+=$4; m+=$5; h+=$6} END{print n " steps, " m " intersections, " h " bodies held back"}' "$TANGERE_SOAK"
