# performance_analysis in a recipe: judged at the end of the run, refused before it where it is wrong.
. "$SOURCE/tests/cli/lib.sh"
write_recipe tiny.yaml
cat >>tiny.yaml <<'END'
performance_analysis:
  enabled: true
  tasks: [training, memory]
  thresholds: {training: 0.999, memory: 9} # what the process holds is not asked here
  visualization: {path: judged, formats: [svg]}
END
run train --quiet tiny.yaml run.dir=mine sft.max_num_steps=40
expect 1 "analysis: training fails" "wrote judged"
is "files of the report" "$(ls judged | tr '\n' ' ')" "dashboard.svg report.md "
grep -q "| training |" judged/report.md || fail "the report lacks the dimension"
grep -q "| convergence |" judged/report.md && fail "a dimension that was not asked for"
run train --quiet tiny.yaml run.dir=other sft.max_num_steps=40 performance_analysis.thresholds.training=-9 \
    performance_analysis.visualization.path=null
expect 0
[ -e other/report/dashboard.svg ] || fail "no report in the run's folder"

run train --quiet tiny.yaml run.dir=refused 'performance_analysis.tasks=[trainning]'
expect 2 "performance_analysis.tasks" "there is no dimension 'trainning'; known are training, inference, memory"
run train --quiet tiny.yaml run.dir=refused '++performance_analysis.thresholds.speed=1'
expect 2 "there is no dimension 'speed'"
run train --quiet tiny.yaml run.dir=refused 'performance_analysis.tasks=[training]'
expect 2 "performance_analysis.thresholds.memory" "memory is not among performance_analysis.tasks"
run train --quiet tiny.yaml run.dir=refused 'performance_analysis.tasks=[training,memory,training]'
expect 2 "performance_analysis.tasks" "training is there twice"
run train --quiet tiny.yaml run.dir=refused performance_analysis.thresholds.training=much
expect 2 "performance_analysis.thresholds.training" "a threshold is a finite number"
run train --quiet tiny.yaml run.dir=refused 'performance_analysis.visualization.formats=[gif]'
expect 2 "svg, html, png or pdf, not as 'gif'"
run train --quiet tiny.yaml run.dir=refused performance_analysis.visualization.path=tiny.yaml
expect 2 "performance_analysis.visualization.path" "tiny.yaml"
run doctor --cached tiny.yaml performance_analysis.visualization.path=tiny.yaml
expect 2 "performance_analysis.visualization.path"
printf 'performance_analysis: {enabled: true}\n' >none.yaml
run train none.yaml run.dir=refused
expect 2 "no section sft, dpo or grpo says what to train"
[ ! -e refused ] || fail "a run that was refused left a folder"
finish
