"""Makes the Spark provider follow an application of YARN without further settings.

For that the stock operator needs ``yarn_track_via_rm_api`` and one ResourceManager's address, or ``durable=False``. All
of this is for tasks with lineage; without it the Spark provider alone follows its application.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import requests

from spark_lineage.secrets.redaction import redact
from spark_lineage.submit.hook import environment, is_yarn_cluster

if TYPE_CHECKING:
    from requests.auth import AuthBase

    from spark_lineage.launch.log import Log

    Found = tuple[Sequence[str], AuthBase | None]

_TIMEOUT_SECONDS = (3, 5)
_NO_ANSWER = (requests.RequestException, RuntimeError, ValueError, LookupError, TypeError, AttributeError)
_WAITS = "spark-submit stays until the application has ended, and a retry submits it again: %s"
_UNKNOWN = (
    "no ResourceManager is known; give yarn_resourcemanager_webapp_address in the extra of the Spark connection, or a "
    "HADOOP_CONF_DIR whose yarn-site.xml names it"
)


def track_on_yarn(
    operator: Any, hook: Any, find: Callable[[Mapping[str, str]], Found], *, has_earlier_job: bool, log: Log
) -> None:
    """Settle how the end of an application is found, before it is submitted; what the user has chosen stays.

    Upstream faults (Spark provider 6.3): the defaults fail each task in deploy mode cluster with a ``ValueError``, a
    ResourceManager that is in ``yarn-site.xml`` has to be named again, and of several the standby is asked for ever.

    A ResourceManager that does not answer is asked all the same where an earlier try has submitted a job, which would
    run twice if it were submitted anew.

    :param find: returns, by the environment of spark-submit, where the ResourceManagers may be asked, and how if the
        operator does not say it; None for the provider's own way
    """
    if not is_yarn_cluster(hook) or not hasattr(hook, "_yarn_track_via_rm_api"):
        return  # the Spark provider 5 waits for spark-submit always
    is_chosen = hook._yarn_track_via_rm_api
    if not (is_chosen or getattr(operator, "durable", False) or getattr(operator, "deferrable", False)):
        return
    urls, auth = find(environment(hook))
    if urls:
        hook._yarn_rm_auth = hook._yarn_rm_auth or auth
        if len(urls) > 1:
            # The provider knows one address, which may be that of a standby by the time it asks.
            hook._get_yarn_rm_base_url = lambda: next((url for url in urls if not _trouble(hook, url)), urls[0])
        else:
            hook._yarn_rm_base_url = urls[0]
    if not is_chosen:
        trouble = _reason_to_wait(hook, urls)
        if trouble and not (has_earlier_job and urls):
            operator.durable = False
            log.warning(_WAITS, trouble)
            return
        hook._yarn_track_via_rm_api = True
        log.debug("YARN is polled at %s for the end of the application", redact(", ".join(urls)))
    _run_commands_at_the_end(hook)


def application_of(hook: Any, launch_id: str) -> str | None:
    """Return the application that was submitted with a launch's id as its tag; None where YARN knows none.

    Upstream fault (6.3): the id is stored only when spark-submit has ended; a retry of a worker that was lost before
    submits the job a second time.

    Asks ``/ws/v1/cluster/apps?applicationTags=`` of the ResourceManager; one that does not answer knows none.
    """
    try:
        answer = _ask(hook, hook._get_yarn_rm_base_url(), "apps", applicationTags=launch_id)
        return max((str(one["id"]) for one in (answer["apps"] or {}).get("app", ())), default=None)
    except _NO_ANSWER:
        return None


def _ask(hook: Any, url: str, what: str, **parameters: str) -> Any:
    url = f"{url}/ws/v1/cluster/{what}"
    answer = requests.get(url, parameters, auth=hook._resolved_yarn_rm_auth, timeout=_TIMEOUT_SECONDS)
    answer.raise_for_status()
    return answer.json()


def _reason_to_wait(hook: Any, urls: Sequence[str]) -> str:
    if str(hook._conf.get("spark.yarn.submit.waitAppCompletion", "")).strip().lower() == "true":
        return "spark.yarn.submit.waitAppCompletion is true"
    troubles = [_trouble(hook, url) for url in urls]
    return "" if "" in troubles else "; ".join(troubles) or _UNKNOWN


def _trouble(hook: Any, url: str) -> str:
    """Return why the hook cannot poll there; empty where it can."""
    try:
        state = _ask(hook, url, "info")["clusterInfo"].get("haState", "ACTIVE")
    except _NO_ANSWER as error:
        return redact(f"{url} does not answer ({type(error).__name__}: {error})")
    return "" if state == "ACTIVE" else f"{url} is {state}"


def _run_commands_at_the_end(hook: Any) -> None:
    """Have ``post_submit_commands`` wait for the end of the application.

    Upstream fault (6.3): they run as soon as spark-submit has ended, which is when the application begins.
    """
    submit = hook.submit

    def submit_without_commands(*arguments: Any, **keywords: Any) -> Any:
        hook._post_submit_commands_done = True
        try:
            submitted = submit(*arguments, **keywords)
        except BaseException:
            hook._post_submit_commands_done = False
            hook._run_post_submit_commands()
            raise
        hook._post_submit_commands_done = False
        return submitted

    hook.submit = submit_without_commands
