# SPDX-License-Identifier: GPL-3.0-or-later
# Measures of speed; part of the Makefile.

.PHONY: bench

# The table of kernels, and models with everything in RAM, next to other programs (llama-bench) if given.
bench_models = $(or $(MODELS),$(MODEL))
bench: all $(checkkern)
	$(if $(and $(PEER),$(bench_models)),,$(if $(checkkern),./checkkern --bench))
	$(if $(bench_models),$S/tools/bench-peer -b . $(if $(PAIRS),-r $(PAIRS)) $(foreach p,$(PEER),-P '$p') $(bench_models),@echo \
	    'bench: MODELS="FILE..." measures models too, PEER="LLAMA-BENCH..." other programs beside them')
