"""Makes the Spark provider follow an application of YARN without further settings.

For that the stock operator needs ``yarn_track_via_rm_api`` and one ResourceManager's address, or ``durable=False``. All
of this is for tasks with lineage; without it the Spark provider alone follows its application.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from spark_lineage.adapters.spark_submit import environment, is_yarn_cluster
from spark_lineage.http_client import NoAnswerError

if TYPE_CHECKING:
    from spark_lineage.launch.log import Log

_APPS = "/ws/v1/cluster/apps"
_WAITS = "spark-submit stays until the application has ended, and a retry submits it again: %s"
_UNKNOWN = (
    "no ResourceManager is known; give yarn_resourcemanager_webapp_address in the extra of the Spark connection, or a "
    "HADOOP_CONF_DIR whose yarn-site.xml names it"
)
_OTHER_SHAPE = (LookupError, TypeError, AttributeError)


class ResourceManagers(NamedTuple):
    """Where the ResourceManagers are; ``get`` returns JSON, both functions raise ``NoAnswerError``."""

    urls: Sequence[str]
    get: Callable[[str], Any]
    kill: Callable[[str], object]
    is_anonymous: bool


def track_on_yarn(
    operator: Any,
    hook: Any,
    find: Callable[[Mapping[str, str]], ResourceManagers],
    *,
    has_earlier_job: bool,
    log: Log,
) -> ResourceManagers | None:
    """Settle how the end of an application is found, before it is submitted; what the user has chosen stays.

    Upstream faults (Spark provider 6.3): the defaults fail each task in deploy mode cluster with a ``ValueError``, a
    ResourceManager that is in ``yarn-site.xml`` has to be named again, and of several the standby is asked for ever.

    A ResourceManager that does not answer is asked all the same where an earlier try has submitted a job, which would
    run twice if it were submitted anew.

    :param find: returns the ResourceManagers, by the environment of spark-submit
    :return: those that the hook asks; None where it follows no application
    """
    if not is_yarn_cluster(hook) or not hasattr(hook, "_yarn_track_via_rm_api"):
        return None  # the Spark provider 5 waits for spark-submit always
    is_chosen = hook._yarn_track_via_rm_api
    if not (is_chosen or getattr(operator, "durable", False) or getattr(operator, "deferrable", False)):
        return None
    found = find(environment(hook))
    if found.urls:
        _ask_all(hook, found)
    if not is_chosen:
        trouble = _reason_to_wait(hook, found)
        if trouble and not (has_earlier_job and found.urls):
            operator.durable = False
            log.warning(_WAITS, trouble)
            return None
        hook._yarn_track_via_rm_api = True
        log.debug("YARN is polled at %s for the end of the application", ", ".join(found.urls))
    _run_commands_at_the_end(hook)
    return found


def application_of(found: ResourceManagers, launch_id: str) -> str | None:
    """Return the application that was submitted with a launch's id as its tag; None where YARN knows none.

    Upstream fault (6.3): the id is stored only when spark-submit has ended; a retry of a worker that was lost before
    submits the job a second time.

    Asks ``/ws/v1/cluster/apps?applicationTags=`` of the ResourceManagers; one that does not answer knows none.
    """
    for url in found.urls:
        try:
            apps = found.get(f"{url}{_APPS}?applicationTags={quote(launch_id, safe='')}")["apps"] or {}
            return max((str(one["id"]) for one in apps.get("app", ())), default=None)
        except (NoAnswerError, *_OTHER_SHAPE):
            continue
    return None


def _ask_all(hook: Any, found: ResourceManagers) -> None:
    """Have the first ResourceManager that answers asked, as the connection says how.

    A login that the user has given to the provider itself is the provider's to send.
    """
    hook._yarn_rm_base_url = found.urls[0]
    if _has_own_login(hook, found):
        query = hook._query_yarn_application_status
        hook._query_yarn_application_status = partial(_query_each, hook, query, found.urls)
        return

    def status(application_id: str) -> tuple[str, str, str]:
        problems = []
        for url in found.urls:
            try:
                app = found.get(f"{url}{_APPS}/{application_id}")["app"]
                return app["state"], app["finalStatus"], app.get("diagnostics") or ""
            except NoAnswerError as error:
                problems.append(str(error))
            except _OTHER_SHAPE:
                problems.append(f"{url} answered JSON of another shape")
        raise RuntimeError(f"YARN RM REST API request for application {application_id} failed: {'; '.join(problems)}")

    def kill(application_id: str) -> None:
        try:
            found.kill(application_id)
        except NoAnswerError as error:
            hook.log.warning("YARN kill request for %s failed: %s", application_id, error)
        else:
            hook.log.info("YARN was asked to kill %s", application_id)

    vars(hook).update(_query_yarn_application_status=status, _kill_yarn_application=kill)


def _query_each(hook: Any, query: Callable[[str], Any], urls: Sequence[str], application_id: str) -> Any:
    problem = None
    for url in urls:
        hook._yarn_rm_base_url = url
        try:
            return query(application_id)
        except RuntimeError as error:
            problem = error
    raise problem or RuntimeError(_UNKNOWN)


def _has_own_login(hook: Any, found: ResourceManagers) -> bool:
    has_keytab = hook._connection.get("keytab") and hook._connection.get("principal")
    return bool(hook._yarn_rm_auth or (has_keytab and found.is_anonymous))


def _reason_to_wait(hook: Any, found: ResourceManagers) -> str:
    if str(hook._conf.get("spark.yarn.submit.waitAppCompletion", "")).strip().lower() == "true":
        return "spark.yarn.submit.waitAppCompletion is true"
    troubles = [_trouble(found, url) for url in found.urls]
    return "" if "" in troubles or (found.urls and _has_own_login(hook, found)) else "; ".join(troubles) or _UNKNOWN


def _trouble(found: ResourceManagers, url: str) -> str:
    """Return why a ResourceManager cannot be polled; empty where it can."""
    try:
        state = found.get(f"{url}/ws/v1/cluster/info")["clusterInfo"].get("haState", "ACTIVE")
    except NoAnswerError as error:
        return f"{url} does not answer ({error})"
    except _OTHER_SHAPE:
        return f"{url} answers as another server does"
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
