// Results that results_mode.cpp, compiled without exceptions, gives to the test that runs it.
#pragma once

int failure_is_a_value();
int success_holds_the_value();
int operators_return_results();
