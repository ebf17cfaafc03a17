-- Tells how rules stand. KEYS[1] is not used: a key of the same user. Answers 1, or 4 if the caller's clock is too
-- far off; 0; states.
local all, elsewhen = rules()
if elsewhen then return {4, ms} end
return states(all, {1, 0})
