import ArgumentParser
import Lazaret
import ManagedObjectModel
import Migration
import PersistentStore
import Platform
import SQLiteFormat
import SystemPackage

struct InspectCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "inspect", abstract: "Says what a store is, whether it is sound, and whether the app's model opens it.",
    usage: "lazaret inspect <store> [--model <model> …] [<options>]",
    discussion: """
      Touches nothing: no byte of the store changes, and no file appears beside it.

      A repairable store has sound pages, but lacks something of its own model; what it lacks is listed.

      Exits with 1 where there is no store, with 2 for a damaged or a repairable one, where what was written last may be missing, and where --check data finds something or cannot be done, with 3 for one that is unavailable or encrypted. An outdated or incompatible store is told with 0.
      """, examples: "lazaret inspect Stores/App.sqlite --model App.xcdatamodeld")

  @Argument(help: "The store's main file.") var store: PathArgument

  @OptionGroup var models: FittingModelsOption

  @OptionGroup var versionOrder: VersionOrderOptions

  @Option(
    help: .text(
      "How closely to look: at some pages first (quick), at every page (full), or at references, constraints, mandatory values and files of large values of a Core Data store too (data).",
      "depth"))
  var check: InspectCheck = .full

  @Flag(inversion: .prefixedNo, help: "Count the records of each entity.") var counts = true

  @OptionGroup var table: TableOptions
  @OptionGroup var output: OutputOptions

  func perform() throws {
    let models = models.paths
    let model = try versionOrder.loadAppModel(models, fitting: store.path, json: output.json)
    let line = ProgressLine()
    let options = Examiner.Options(depth: check == .quick ? .quick : .full, countsRecords: counts) { done, total in
      line.show("Checking", Int64(done), of: Int64(total), .things("pages"))
      return true
    }
    var examination = try Examiner().examine(store.path, model: model, options: options)
    let obstacle = check == .data ? Self.obstacle(to: examination) : nil
    let data = try check == .data && obstacle == nil ? Self.checkData(of: examination) : nil
    if data?.lacksFiles == true { examination.tellMissingFiles() }
    if data?.hasContradictions == true { examination.tellContradictions() }
    if data?.isClean == true { examination.tellCleanRecords() }
    examination.reason.hint = OptionHints.worded(examination.reason.hint)
    let nearest = NearestVersion(to: examination, in: model)
    line.clear()
    try output.print(
      JSON.Object(
        examination,
        ["path": PathText(store.path), "data": data, "dataNotChecked": obstacle, "nearestVersion": nearest]),
      ExaminationText(
        examination: examination, path: store.path, model: models.count == 1 ? models[0] : nil, data: data,
        dataObstacle: obstacle, nearest: nearest
      ).text)
    if TextStyle.current.isQuiet, !output.json {
      // The exit code cannot distinguish a mistyped path from a sound store.
      let isAsItShouldBe = examination.verdict == .compatible && !examination.health.mayLackCommits
      var words = isAsItShouldBe ? [] : [examination.reason.words]
      if data?.hasContradictions == true { words.append("Its records contradict its model.") }
      if data?.lacksFiles == true { words.append("Files that its records refer to are missing.") }
      if let obstacle { words.append("The records were not checked: \(obstacle).") }
      if !words.isEmpty {
        Terminal.standardError.write(
          "lazaret: \(printable(store.path.string)): \(examination.verdictWord). "
            + "\(words.joined(separator: " "))\n")
      }
    }
    switch examination.verdict {
    case .unavailable:
      let isFolder = examination.reason.code == FileError.Kind.isDirectory.rawValue
      throw isFolder ? ExitStatus.usage : ExitStatus.unavailable
    case .damaged, .repairable: throw ExitStatus.doubtful
    case .missing: throw ExitStatus.failed
    case .compatible, .outdated, .incompatible: break
    }
    if data?.isClean == false || obstacle != nil || examination.health.mayLackCommits { throw ExitStatus.doubtful }
  }

  private static func obstacle(to examination: Examination) -> String? {
    switch examination.verdict {
    case .missing: return "there is no store"
    case .damaged: return "the store is damaged"
    case .unavailable where examination.metadata == nil: return "the store is unavailable"
    case .compatible, .repairable, .outdated, .incompatible, .unavailable: break
    }
    if examination.kind != .coreData { return "it is not a Core Data store" }
    if examination.storeModel == nil {
      return "the store carries no model of its own, and none that it was written with was given with --model"
    }
    return examination.drift == nil ? "the store cannot be compared with its model" : nil
  }

  private static func checkData(of examination: Examination) throws -> DataCheck? {
    guard let files = examination.files, let model = examination.storeModel else { return nil }
    return try DataCheck(of: files, layout: try StoreLayout(model))
  }
}

enum InspectCheck: String, CaseIterable, ExpressibleByArgument {
  /// Some pages; all if these are damaged.
  case quick

  case full

  /// Every page and the records' references.
  case data
}

struct ExaminationText {
  let examination: Examination
  let path: FilePath

  var model: FilePath?

  /// The contradictions in the records; nil if not checked.
  var data: DataCheck?

  /// The reason for a requested check not made, without a full stop.
  var dataObstacle: String?

  /// The app's version closest to an unknown one.
  var nearest: NearestVersion?

  var text: String {
    var lines = "\(printable(path.string)): \(tinted(examination.verdictWord, examination.verdict.tint))\n"
    lines += "  \(examination.reason.words)\n"
    let facts = facts
    if !facts.isEmpty { lines += "  \(facts)\n" }
    lines += nearest?.text ?? ""
    if !examination.entities.isEmpty { lines += "\n" + entities }
    let notes = examination.health.notes
    if !notes.isEmpty {
      lines += "\n"
      for note in notes { lines += "  \(Self.severity(of: note)): \(Self.line(note))\n" }
    }
    lines += missing
    lines += "\n  \(examination.reason.hint)\n"
    if let command = NextStep(for: path, model: model).command(after: examination) { lines += "    \(command)\n" }
    return lines
  }

  private var facts: String {
    let health = examination.health
    var facts: [String] = []
    switch examination.kind {
    case .coreData: facts.append("Core Data store")
    case .sqlite: facts.append("SQLite database")
    case .unknown: break
    }
    if let version = examination.modelVersion { facts.append("model version \(printable(version))") }
    let identifiers = (examination.metadata?.versionIdentifiers ?? []).filter { !$0.isEmpty }
    if !identifiers.isEmpty {
      facts.append(
        "version identifier\(identifiers.count == 1 ? "" : "s") \(identifiers.map { printable($0) }.joined(separator: ", "))"
      )
    }
    if let pages = health.pageCount, let size = health.pageSize {
      facts.append("\(counted(Int64(pages), "page")) of \(grouped(size)) bytes")
    }
    if let log = health.log, log.frames > 0 {
      facts.append(
        "\(grouped(log.committedFrames)) of \(counted(Int64(log.frames), "frame")) in the write-ahead log committed")
      if health.pageCount == nil, let pages = log.databasePages {
        facts.append("\(grouped(log.pages)) of the \(counted(Int64(pages), "page")) that the log counts are in it")
      }
    }
    if let version = health.writtenBySQLite { facts.append("written by SQLite \(version)") }
    return facts.joined(separator: " · ")
  }

  /// The parts missing from the store's model and the records' contradictions, a line each.
  private var missing: String {
    var lines = ""
    let differences = examination.drift?.differences ?? []
    if !differences.isEmpty {
      lines += "\n"
      for difference in differences.prefix(Self.listLimit) { lines += "  \(difference.code): \(difference.words)\n" }
      if differences.count > Self.listLimit { lines += "  and \(grouped(differences.count - Self.listLimit)) more\n" }
    }
    if let dataObstacle { lines += "\n  The records were not checked: \(dataObstacle).\n" }
    guard let data else { return lines }
    lines += "\n"
    if data.isClean {
      lines += "  The records have no reference, constraint or mandatory value against the model.\n"
    } else if data.findings.isEmpty {
      lines += "  What could be checked of the records is not against the model.\n"
    }
    for words in data.notChecked.prefix(Self.listLimit) { lines += "  not checked: \(words)\n" }
    for finding in data.findings.prefix(Self.listLimit) { lines += "  \(finding.kind.rawValue): \(finding.words)\n" }
    return lines
  }

  private static let listLimit = 100

  private var entities: String {
    let hasEntities = examination.kind == .coreData && examination.storeModel != nil
    var table = TextTable(
      (hasEntities ? ["entity"] : []) + ["table", "records"], numericColumns: [hasEntities ? 2 : 1],
      leavingOut: hasEntities ? "entities without records" : "tables without records")
    for entity in examination.entities {
      table.append(
        (hasEntities ? [printable(entity.name)] : []) + [
          printable(entity.table), entity.rows.map { grouped($0) } ?? "–",
        ])
    }
    return table.text()
  }

  private static func severity(of note: HealthNote) -> String {
    let tint: Tint? =
      switch note.severity {
      case .note: nil
      case .warning: .doubtful
      case .damage: .bad
      }
    return tinted(note.severity.rawValue, tint)
  }

  private static func line(_ note: HealthNote) -> String {
    var line = note.words
    if note.count > 1 { line += " (\(grouped(note.count)) times)" }
    if !note.pages.isEmpty {
      let pages = note.pages.map { "\($0)" }.joined(separator: ", ")
      line += note.pages.count == 1 ? ", page \(pages)" : ", pages \(pages)"
      if note.count > note.pages.count { line += " …" }
    }
    return line
  }
}

extension Verdict {
  var tint: Tint {
    switch self {
    case .compatible: .good
    case .missing, .outdated, .repairable, .unavailable: .doubtful
    case .damaged, .incompatible: .bad
    }
  }
}

struct NextStep {
  private let store: String
  private let model: String
  private let rescued: String

  init(for store: FilePath, model: FilePath?) {
    self.store = shellQuoted(store)
    self.model = model.map { " --model \(shellQuoted($0))" } ?? ""
    let name = store.stem.map { "\($0).rescued.sqlite" } ?? "Rescued.sqlite"
    rescued = shellQuoted(store.removingLastComponent().appending(name))
  }

  func command(after examination: Examination) -> String? {
    switch examination.verdict {
    case .damaged where examination.isForeignFile || examination.health.fileKind == .empty: nil
    case .damaged: model.isEmpty ? salvage : "lazaret open \(store)\(model)"
    case .outdated: model.isEmpty ? nil : "lazaret migrate \(store)\(model)"
    case .repairable:
      examination.isBeyondRepair ? salvage : "lazaret repair \(store)\(model.isEmpty ? " --model \(store)" : model)"
    case .incompatible: examination.isForeign && !model.isEmpty ? replacing : nil
    case .compatible, .missing, .unavailable: nil
    }
  }

  /// Returns the advice for a store that `open` left in place; empty if there is none.
  func advice(after kind: LazaretErrorKind, in home: ChosenHome) -> String {
    switch kind {
    case .foreignStore, .foreignFile: " To have it quarantined and a new store made in its place: \(replacing)"
    case .damaged, .incompatible:
      " To have it quarantined and salvaged: lazaret open \(store)\(model) --on-damage salvage"
    // The hint ends with the command.
    case .salvagePending: "\(home.optionBesidesStore)\(model) --install"
    default: ""
    }
  }

  private var salvage: String { "lazaret salvage \(store)\(model) -o \(rescued)" }
  private var replacing: String { "lazaret open \(store)\(model) --replace-foreign" }
}

/// The model version closest to a store of an unknown version, with the differences.
struct NearestVersion: Encodable {
  struct Entity: Encodable {
    var name: String

    /// `added` if only the version has it, `removed` if only the store has it, else `changed`.
    var change: String

    /// A line a property; empty if the store carries no model.
    var differences: [String]
  }

  var name: String

  var equal: Int

  var entities: [Entity]

  /// Finds the closest version; nil for a known version or without a common entity.
  init?(to examination: Examination, in model: AppModel?) {
    guard case .coreData(let bundle)? = model, examination.kind == .coreData, examination.modelVersion == nil,
      let hashes = examination.metadata?.versionHashes, !hashes.isEmpty
    else { return nil }
    let versions = bundle.unorderedVersions + bundle.versions
    func distance(_ version: ModelVersion) -> Int {
      Set(version.versionHashes.keys).union(hashes.keys).count { version.versionHashes[$0] != hashes[$0] }
    }
    // On a tie, the newest.
    guard let least = versions.map(distance).min(), let nearest = versions.last(where: { distance($0) == least })
    else { return nil }
    let own = nearest.versionHashes
    guard !Set(own.keys).isDisjoint(with: hashes.keys) else { return nil }
    name = nearest.name
    equal = own.count { hashes[$0.key] == $0.value }
    let difference = examination.storeModel.map { ModelDifference(from: $0, to: nearest.model) }
    entities = Set(own.keys).union(hashes.keys).sorted(by: precedesByCodeUnit).filter { own[$0] != hashes[$0] }
      .map { name in
        Entity(
          name: name, change: hashes[name] == nil ? "added" : own[name] == nil ? "removed" : "changed",
          differences: difference.map { Self.differences($0, of: name) } ?? [])
      }
  }

  private static func differences(_ difference: ModelDifference, of entity: String) -> [String] {
    func lines(_ list: [ModelDifference.PropertyDifference], _ word: String) -> [String] {
      list.filter { $0.entity == entity }.map { property in
        "\(printable(property.property)): "
          + (property.changes.isEmpty ? word : property.changes.joined(separator: ", "))
      }
    }
    return lines(difference.removedProperties, "only in the store")
      + lines(difference.addedProperties, "only in the version") + lines(difference.changedProperties, "changed")
      + (difference.entityChanges[entity] ?? [])
  }

  var text: String {
    var lines = "\n  nearest version: \(printable(name)), \(counted(equal, "entity", "entities")) the same\n"
    for entity in entities.prefix(50) {
      let word =
        switch entity.change {
        case "added": "only in the version"
        case "removed": "only in the store"
        default: "differs"
        }
      lines += "    \(printable(entity.name)): \(word)\n"
      for difference in entity.differences.prefix(20) { lines += "      \(difference)\n" }
      if entity.differences.count > 20 { lines += "      and \(entity.differences.count - 20) more\n" }
    }
    if entities.count > 50 { lines += "    and \(entities.count - 50) more\n" }
    return lines
  }
}
