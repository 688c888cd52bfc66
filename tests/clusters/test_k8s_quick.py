from __future__ import annotations
import threading, time, json, os, signal
from datetime import UTC, datetime
import pytest, psutil
from lineage_backends.kubernetes import NAMESPACE, PODS
POD="load-0123456789abcdef-driver"
now=lambda: datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
SUBMITTED=[f"INFO LoggingPodStatusWatcherImpl: State changed, new state: ", f"\t pod name: {POD}", f"\t labels: spark-app-name -> load, spark-app-selector -> spark-0123456789abcdef, spark-role -> driver, spark-version -> 4.2.0"]
def patch(k, phase, state, **more):
    st={"phase":phase,"podIP":"127.0.0.1","containerStatuses":[{"name":"spark-kubernetes-driver","image":"spark","imageID":"","restartCount":0,"ready":False,"state":state}],**more}
    k.ask("PATCH", f"{PODS}/{POD}/status", {"status":st}, kind="strategic-merge-patch+json")
@pytest.fixture
def pod(kubernetes):
    k=kubernetes
    k.kubelet.is_off = True
    k.ask("POST", PODS, {"metadata":{"name":POD,"labels":{"spark-role":"by-hand","spark-app-selector":"spark-0123456789abcdef"}},"spec":{"nodeName":"node","containers":[{"name":"spark-kubernetes-driver","image":"spark"}]}})
    yield
    try: k.ask("DELETE", f"{PODS}/{POD}", {"gracePeriodSeconds":0})
    except Exception as e: print("del", e)
def end(k, code):
    t=now()
    patch(k, "Failed" if code else "Succeeded", {"terminated":{"exitCode":code,"reason":"Error" if code else "Completed","startedAt":t,"finishedAt":t}})
def run(bench, k, extra=None, log=None, exit_code=0, **args):
    x={"deploy-mode":"cluster","namespace":NAMESPACE,"status_token":k.token,"status_ca_file":str(k.authority)}
    x.update(extra or {})
    bench.connection={"conn_type":"spark","host":f"k8s://{k.url}","extra":{a:b for a,b in x.items() if b}}
    bench.env={**k.env, **bench.env}
    bench.limit_seconds=100
    t=time.time()
    o=bench.run(log=log if log is not None else SUBMITTED, exit_code=exit_code, **args)
    print("SECONDS", time.time()-t)
    print(o.printed); print("ERROR", o.error); print("LINEAGE", json.dumps(o.lineage["run_facets"].get("sparkLineage_status"),indent=1)[:3000] if o.lineage else None); print("STORE", o.store)
    return o
CASES={
 "plain_ok": dict(code=0, log=[*SUBMITTED,"\t Exit code: 0"]),
 "plain_fail": dict(code=1, log=[*SUBMITTED,"\t exit code: 1"]),
 "nons": dict(code=0, log=[*SUBMITTED,"\t Exit code: 0"], extra={"namespace":None}),
 "nons_defer": dict(code=0, log=[*SUBMITTED,"\t Exit code: 0"], extra={"namespace":None}, deferrable=True),
 "track_ok": dict(code=0, track_driver_via_k8s_api=True, store={}),
 "track_fail": dict(code=1, track_driver_via_k8s_api=True, store={}),
 "defer_ok": dict(code=0, deferrable=True, store={}),
 "defer_fail": dict(code=1, deferrable=True, store={}),
 "defer_nokube": dict(code=1, deferrable=True, env={"AIRFLOW__KUBERNETES_EXECUTOR__IN_CLUSTER":"True"}),
}
@pytest.mark.parametrize("name", CASES)
def test_case(bench, kubernetes, pod, name):
    c=dict(CASES[name]); code=c.pop("code")
    env=c.pop("env",None)
    patch(kubernetes,"Running",{"running":{"startedAt":now()}})
    end(kubernetes, code)
    if env: bench.env.update(env)
    run(bench, kubernetes, **c)
    assert 0
@pytest.mark.parametrize("how", ["track","defer"])
@pytest.mark.parametrize("what", ["deleted","evicted","deleted_graceful"])
def test_gone(bench, kubernetes, pod, how, what):
    patch(kubernetes,"Running",{"running":{"startedAt":now()}})
    def act():
        time.sleep(5)
        if what=="evicted":
            kubernetes.ask("PATCH", f"{PODS}/{POD}/status", {"status":{"phase":"Failed","reason":"Evicted","message":"The node was low on resource: memory."}}, kind="strategic-merge-patch+json")
        else: kubernetes.ask("DELETE", f"{PODS}/{POD}", {"gracePeriodSeconds":0 if what=="deleted" else 5})
        if what=="deleted_graceful":
            time.sleep(3); end(kubernetes,143); time.sleep(.1); kubernetes.ask("DELETE", f"{PODS}/{POD}", {"gracePeriodSeconds":0})
    t=threading.Thread(target=act); t.start()
    run(bench, kubernetes, store={}, **{"track_driver_via_k8s_api":True} if how=="track" else {"deferrable":True})
    t.join()
    assert 0
DEPLOYED=["26/11/25 04:00:00 INFO KubernetesClientApplication: Deployed Spark application load with application ID spark-0123456789abcdef and submission ID jobs:load-0123456789abcdef-driver into Kubernetes"]
@pytest.mark.parametrize("enabled",[True,False])
@pytest.mark.parametrize("how", ["track","defer"])
def test_deployed(bench, kubernetes, pod, how, enabled):
    patch(kubernetes,"Running",{"running":{"startedAt":now()}})
    end(kubernetes,1)
    run(bench, kubernetes, log=DEPLOYED, store={}, lineage_enabled=enabled, **{"track_driver_via_k8s_api":True} if how=="track" else {"deferrable":True})
    assert 0
@pytest.mark.parametrize("incluster",["True","False"])
@pytest.mark.parametrize("how", ["plain","track","defer"])
def test_kill(bench, kubernetes, pod, how, incluster):
    patch(kubernetes,"Running",{"running":{"startedAt":now()}})
    bench.env["AIRFLOW__KUBERNETES_EXECUTOR__IN_CLUSTER"]=incluster
    a={"plain":{}, "track":{"track_driver_via_k8s_api":True},"defer":{"deferrable":True}}[how]
    if how=="plain": a["signal_parent"]=signal.SIGUSR1
    else: a["execution_timeout"]=3
    if how=="track":
        def act():
            time.sleep(4); (task,)=psutil.Process(bench.laboratory._process.pid).children(); os.kill(task.pid, signal.SIGUSR1)
        threading.Thread(target=act).start()
    run(bench, kubernetes, log=DEPLOYED, store={}, **a)
    p=[x["metadata"] for x in kubernetes.ask("GET",PODS)["items"]]
    print("PODS LEFT", [(x["name"],x.get("deletionTimestamp")) for x in p])
    assert 0
def test_never_seen(bench, kubernetes):
    run(bench, kubernetes, log=DEPLOYED, store={}, deferrable=True)
    assert 0
@pytest.mark.parametrize("token", ["wrong","stranger"])
def test_denied(bench, kubernetes, pod, token):
    patch(kubernetes,"Running",{"running":{"startedAt":now()}})
    end(kubernetes,1)
    run(bench, kubernetes, log=[*DEPLOYED,"\t exit code: 1"], store={}, extra={"status_token": kubernetes.stranger_token if token=="stranger" else "wrong"})
    assert 0
