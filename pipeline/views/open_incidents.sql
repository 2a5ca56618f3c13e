-- The incidents that have not ended, each with the newest state of its partition. since_exact is false where the
-- metadata log begins with it.
-- Tables of ktriage pipeline watch: metadata_events, metadata_incidents.
SELECT cluster_id, coalesce(cluster_name, cluster_id) AS cluster_name, incident, topic, topic_id, partition, since,
    first_batch <> -1 AS since_exact, isr, elr, last_known_elr, min_isr, events.at AS last_event_at
FROM (
    SELECT e.*, min(e.at) OVER (PARTITION BY e.cluster_id, e.incident) AS since,
        min(e.batch) OVER (PARTITION BY e.cluster_id, e.incident) AS first_batch,
        row_number() OVER (PARTITION BY e.cluster_id, e.incident ORDER BY e.at DESC, e.offset DESC) AS place
    FROM metadata_events e
    LEFT JOIN metadata_incidents i ON i.cluster_id = e.cluster_id AND i.incident = e.incident
    WHERE e.incident IS NOT NULL AND i.incident IS NULL
) events
WHERE place = 1
