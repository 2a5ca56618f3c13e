"""Airflow 3: once a day what failures would take of every cluster, then the values for Prometheus; old runs go.

For the folder of DAGs. Its workers need ``ktriage[spark]``, Java 17, and /var/lib/ktriage.
"""

from datetime import UTC, datetime

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

with DAG(
    "ktriage_exposure",
    schedule="0 5 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
):
    # Status 1: some cluster could not be read; the others were.
    exposure = BashOperator(
        task_id="exposure",
        bash_command="ktriage pipeline exposure --in /var/lib/ktriage/lake --out /var/lib/ktriage/results"
        " || [ $? = 1 ]",
    )
    metrics = BashOperator(
        task_id="metrics",
        bash_command="ktriage pipeline metrics /var/lib/ktriage/lake /var/lib/ktriage/results"
        " --out /var/lib/ktriage/ktriage.prom",
    )
    prune = BashOperator(
        task_id="prune", bash_command="ktriage pipeline prune /var/lib/ktriage/results --keep 90"
    )
    exposure >> metrics >> prune
