#!/usr/bin/env bash
#SBATCH --job-name=distc-train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --time=24:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
# TERM to every task two minutes before the time is up: they write a last checkpoint and end with 143.
#SBATCH --signal=TERM@120
# Each task finds its number and the first node in Slurm's environment.
srun --kill-on-bad-exit=0 "${TRAIN:-./train}" --data "${DATA:-train.npz}" --epochs "${EPOCHS:-100}" --shuffle --seed 1 \
  --checkpoint-dir "${CHECKPOINTS:-checkpoints}" --save-every 1000 --resume --max-restarts 20 --secret-file "${SECRET:-secret}" \
  --log-json log.jsonl --quiet
status=$?
if [ "$status" -eq 143 ]; then
  scontrol requeue "$SLURM_JOB_ID" # the rest of it, another time
fi
exit "$status"
