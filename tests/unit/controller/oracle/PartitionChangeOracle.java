import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.kafka.common.DirectoryId;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.controller.PartitionChangeBuilder;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

/** Asks a released Kafka what it writes for each case of a file: java PartitionChangeOracle.java CASES ANSWERS. */
public class PartitionChangeOracle {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        ArrayNode answers = JSON.createArrayNode();
        for (JsonNode asked : JSON.readTree(new File(args[0]))) {
            ApiMessageAndVersion written = proposal(asked).build().orElse(null);
            answers.add(written == null ? JSON.nullNode() : row((PartitionChangeRecord) written.message()));
        }
        JSON.writeValue(new File(args[1]), answers);
    }

    private static PartitionChangeBuilder proposal(JsonNode asked) {
        Set<Integer> acceptable = new HashSet<>(list(asked.get("acceptableLeaders")));
        PartitionChangeBuilder builder = new PartitionChangeBuilder(
            registration(asked.get("partition")), Uuid.ONE_UUID, 0, acceptable::contains,
            MetadataVersion.latestProduction(), asked.get("minIsr").asInt(), asked.get("elrEnabled").asBoolean());
        builder.setDefaultDirProvider(broker -> DirectoryId.UNASSIGNED);
        builder.setElection(PartitionChangeBuilder.Election.valueOf(asked.get("election").asText()));
        builder.setUseLastKnownLeaderInBalancedRecovery(
            asked.get("useLastKnownLeaderInBalancedRecovery").asBoolean());
        if (asked.has("targetIsr")) builder.setTargetIsr(list(asked.get("targetIsr")));
        if (asked.has("targetReplicas")) builder.setTargetReplicas(list(asked.get("targetReplicas")));
        if (asked.has("targetRemoving")) builder.setTargetRemoving(list(asked.get("targetRemoving")));
        if (asked.has("targetAdding")) builder.setTargetAdding(list(asked.get("targetAdding")));
        if (asked.has("uncleanShutdownReplicas"))
            builder.setUncleanShutdownReplicas(list(asked.get("uncleanShutdownReplicas")));
        if (asked.has("targetLeaderRecoveryState"))
            builder.setTargetLeaderRecoveryState(
                LeaderRecoveryState.valueOf(asked.get("targetLeaderRecoveryState").asText()));
        return builder;
    }

    private static PartitionRegistration registration(JsonNode held) {
        Uuid[] directories = new Uuid[held.get("replicas").size()];
        Arrays.fill(directories, DirectoryId.UNASSIGNED);
        return new PartitionRegistration.Builder()
            .setReplicas(array(held.get("replicas"))).setDirectories(directories)
            .setIsr(array(held.get("isr"))).setElr(array(held.get("elr")))
            .setLastKnownElr(array(held.get("lastKnownElr")))
            .setRemovingReplicas(array(held.get("removing"))).setAddingReplicas(array(held.get("adding")))
            .setLeader(held.get("leader").asInt()).setLeaderEpoch(held.get("leaderEpoch").asInt())
            .setPartitionEpoch(held.get("partitionEpoch").asInt())
            .setLeaderRecoveryState(LeaderRecoveryState.valueOf(held.get("leaderRecoveryState").asText()))
            .build();
    }

    private static ObjectNode row(PartitionChangeRecord record) {
        ObjectNode row = JSON.createObjectNode();
        put(row, "replicas", record.replicas());
        put(row, "isr", record.isr());
        put(row, "elr", record.eligibleLeaderReplicas());
        put(row, "lastKnownElr", record.lastKnownElr());
        put(row, "removing", record.removingReplicas());
        put(row, "adding", record.addingReplicas());
        if (record.leader() != -2) row.put("leader", record.leader());
        if (record.leaderRecoveryState() != -1)
            row.put("leaderRecoveryState", LeaderRecoveryState.of(record.leaderRecoveryState()).name());
        return row;
    }

    private static void put(ObjectNode row, String key, List<Integer> brokers) {
        if (brokers != null) brokers.forEach(row.putArray(key)::add);
    }

    private static List<Integer> list(JsonNode brokers) {
        List<Integer> list = new ArrayList<>();
        brokers.forEach(broker -> list.add(broker.asInt()));
        return list;
    }

    private static int[] array(JsonNode brokers) {
        return list(brokers).stream().mapToInt(Integer::intValue).toArray();
    }
}
