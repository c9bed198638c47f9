import Lazaret
import Migration

/// A plan in words, for a terminal.
struct MigrationPlanText {
  private let plan: MigrationPlan

  init(_ plan: MigrationPlan) { self.plan = plan }

  var text: String {
    var lines = "\(printable(plan.store.text)): \(verdict)\n"
    if let repair = plan.repair {
      lines += "\n  Repaired first, because it lacks something of its own model:\n"
      for text in repair.changes.map(\.text) + repair.leftOut.map(\.text) { lines += "    \(text)\n" }
    }
    for (number, step) in zip(1..., plan.steps) { lines += "\n" + text(of: step, number) }
    for refusal in plan.refusals {
      lines += "\n  Refused: \(Self.place(refusal))\(printable(refusal.detail))\n"
      if refusal.isOfCoreData {
        lines += "    Core Data says: \(printable(refusal.reason)) (\(refusal.coreDataCode))\n"
      }
      lines += "    Way round: \(printable(refusal.wayRound))\n"
    }
    for detour in plan.detours {
      lines += "\n  Goes by versions between, since \(printable(detour.step)) cannot be inferred:\n"
      for refusal in detour.refusals { lines += "    \(printable(refusal.detail))\n" }
      if detour.losses.isEmpty {
        lines += "    In one step nothing else would have been lost.\n"
      } else {
        lines += "    In one step this would have been lost:\n"
        for loss in detour.losses { lines += "      \(printable(loss))\n" }
      }
    }
    if !plan.carriedRenames.isEmpty {
      lines += "\n  Renamed from version to version, and carried on:\n"
      for rename in plan.carriedRenames { lines += "    \(printable(rename))\n" }
    }
    if plan.isNeeded {
      lines += "\n  Needs \(readableSize(plan.neededBytes)) of free space beside the store; "
      lines += "\(readableSize(plan.freeBytes)) are free.\n"
    }
    for text in plan.unusedMappings { lines += "\n  Not used: \(printable(text))\n" }
    if plan.isInterrupted { lines += "\n  An earlier migration was interrupted; the next one goes on from there.\n" }
    return lines + "\n  Nothing was touched.\n"
  }

  private static func place(_ refusal: MigrationPlan.Refusal) -> String {
    refusal.step.map { "step \(printable($0)): " } ?? ""
  }

  private var verdict: String {
    let way = "\(printable(plan.from ?? "a model of its own")) → \(printable(plan.to))"
    guard plan.refusals.isEmpty else { return "\(way), which cannot be done" }
    guard !plan.steps.isEmpty else { return "of version \(printable(plan.to)) already" }
    return "\(way) in \(counted(Int64(plan.steps.count), "step")), \(counted(Int64(plan.rows), "record"))"
      + ", \(readableSize(plan.bytes))" + outcome
  }

  private var outcome: String {
    var parts: [String] = []
    if plan.freeBytes < plan.neededBytes { parts.append("the disk is too full") }
    if !plan.failures.isEmpty { parts.append("it would fail") }
    if !plan.losses.isEmpty { parts.append("something is lost") }
    if parts.isEmpty { parts.append("nothing is lost") }
    return "; " + parts.joined(separator: ", ")
  }

  private func text(of step: MigrationPlan.Step, _ number: Int) -> String {
    var lines = "  Step \(number) of \(plan.steps.count): \(printable(step.name)), \(Self.words(for: step.mapping)), "
    lines += step.way == .inPlace ? "added and renamed in a copy\n" : "rebuilt in a new file\n"
    if let reason = step.reason { lines += "    because \(printable(reason))\n" }
    for other in step.alternatives { lines += "    not chosen: \(Self.words(for: other))\n" }
    var table = TextTable(["entity", "becomes", "how", "records"], numericColumns: [3])
    for entity in step.entities {
      table.append([
        entity.source.map { printable($0) } ?? "–", entity.destination.map { printable($0) } ?? "–",
        entity.way.rawValue + (entity.policy.map { " (\(printable($0)))" } ?? ""), entity.rows.map { "\($0)" } ?? "?",
      ])
    }
    lines += table.text(indent: "    ")
    lines += Self.list("Would be lost", step.losses) + Self.list("Would fail", step.failures)
    return lines
  }

  private static func words(for mapping: MigrationPlan.Mapping) -> String {
    switch mapping.kind {
    case .inferred: "inferred"
    case .code, .mappingFile, .mappingModel: "by \(printable(mapping.path?.text ?? mapping.name ?? "a mapping"))"
    }
  }

  /// Findings, each with the records concerned.
  static func list(_ title: String, _ findings: [MigrationPlan.Finding]) -> String {
    guard !findings.isEmpty else { return "" }
    return "    \(title):\n"
      + findings.map { finding in
        var count = finding.rows.map { counted(Int64($0), "record") } ?? "how many is known only once it runs"
        if !finding.examples.isEmpty {
          count += ": " + finding.examples.map { "\($0)" }.joined(separator: ", ")
          if finding.examples.count != finding.rows { count += " …" }
        }
        return "      \(printable(finding.text)) (\(count))\n"
      }.joined()
  }
}

/// A migration that was carried out, in words.
struct MigrationText {
  let text: String

  init(_ result: Migrator.Result) {
    var lines = "\(printable(result.store.string)): "
    if let repair = result.repair {
      lines += repair.isNothing ? "" : "repaired (\(repair.words) added)\(result.steps.isEmpty ? "" : ", ")"
    }
    guard !result.steps.isEmpty else {
      if result.repair != nil {
        text = lines + "\n" + (result.backup.map { "\n  The original: \(printable($0.string))\n" } ?? "")
        return
      }
      let outcome =
        result.backup == nil
        ? "of that version already; there was nothing to migrate" : "an interrupted migration was finished"
      text = lines + outcome + "\n"
      return
    }
    lines += "migrated in \(counted(Int64(result.steps.count), "step"))"
    if result.resumedSteps > 0 { lines += ", \(result.resumedSteps) of them by an earlier run" }
    lines += "\n"
    for step in result.steps {
      let rows = step.entities.reduce(0) { $0 + $1.rows }
      lines += "\n  \(printable(step.step)): \(counted(Int64(rows), "record"))\n"
      lines += MigrationPlanText.list("Lost", step.losses)
      for name in step.leftBehind { lines += "    Left behind, since it no longer fits: \(printable(name))\n" }
    }
    if let metrics = result.metrics { lines += "\n  \(printable(metrics.words))\n" }
    if let backup = result.backup { lines += "\n  The original: \(printable(backup.string))\n" }
    text = lines
  }
}
