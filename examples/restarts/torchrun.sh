#!/usr/bin/env bash
# On every host: NODE=0 (the host that MASTER names) or 1. torchrun's agents start all tasks again when one fails, so
# the executable supervises none itself.
exec torchrun --no-python --nnodes 2 --nproc-per-node 1 --node-rank "${NODE:?}" --master-addr "${MASTER:?}" --master-port 29400 --max-restarts 20 \
  "${TRAIN:-./train}" --data "${DATA:-train.npz}" --epochs "${EPOCHS:-100}" --shuffle --seed 1 --checkpoint-dir "${CHECKPOINTS:-checkpoints}" \
  --save-every 1000 --resume --secret-file "${SECRET:-secret}" --log-json log.jsonl --quiet
