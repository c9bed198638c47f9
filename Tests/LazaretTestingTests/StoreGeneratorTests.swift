import GRDB
import LazaretTesting
import PersistentStore
import TestSupport
import Testing

/// Generated stores are what Core Data would have left.
struct StoreGeneratorTests {
  @Test(arguments: StoreProfile.allCases, StoreGenerator.Journal.allCases)
  func theSameSeedMakesTheSameBytes(profile: StoreProfile, journal: StoreGenerator.Journal) throws {
    let folder = try TemporaryFolder()
    let system = FileSystem()
    func contents(_ name: String, seed: UInt64) throws -> [String: [UInt8]] {
      try system.makeDirectory(folder.appending(name))
      let generator = try StoreGenerator(
        Fixture.everything, options: .init(profile, seed: seed, records: 15, journal: journal))
      let store = try generator.write(to: folder.appending("\(name)/Store.sqlite"))
      var result: [String: [UInt8]] = [:]
      for file in try system.descendants(of: store.path.folder).files {
        result[file.relative.map(\.string).joined(separator: "/")] = try system.contents(of: file.path, limit: 1 << 24)
      }
      return result
    }
    let first = try contents("one", seed: 7)
    #expect(try contents("two", seed: 7) == first)
    #expect(try contents("three", seed: 8) != first)
    #expect(first.keys.contains("Store.sqlite-wal") == (journal == .log && profile != .empty))
    #expect(first["Store.sqlite"]?[18] == (journal == .rollback ? 1 : 2))
    if profile == .edge { #expect(first.count > 3) }
  }

  @Test(arguments: StoreProfile.allCases, StoreGenerator.Journal.allCases)
  func theVerdictIsSound(profile: StoreProfile, journal: StoreGenerator.Journal) throws {
    let folder = try TemporaryFolder()
    let generator = try StoreGenerator(Fixture.everything, options: .init(profile, records: 25, journal: journal))
    let made = try generator.write(to: folder.appending("Store.sqlite"))
    #expect(made.notes.isEmpty, "\(made.notes)")
    let bundle = try #require(
      ModelBundle(name: "Test", versions: [Fixture.version("V1", Fixture.everything, current: true)]))
    let found = try Examiner().examine(made.path, model: .coreData(bundle), options: .init(depth: .full))
    #expect(found.verdict == .compatible, "\(found.reason) \(found.health.notes)")
    for entity in found.entities where made.records[entity.name] != nil {
      #expect(entity.rows == made.records[entity.name].map { Int64($0) }, "\(entity.name)")
    }
    #expect((profile == .empty) == (made.recordCount == 0))
  }

  @Test(arguments: StoreProfile.allCases)
  func theRecordsAreValid(profile: StoreProfile) throws {
    let folder = try TemporaryFolder()
    let made = try StoreGenerator(Fixture.everything, options: .init(profile, seed: 3, records: 30, journal: .log))
      .write(to: folder.appending("Store.sqlite"))
    let store = try PersistentStore(opening: made.path, model: Fixture.everything)
    defer { try? store.close() }
    let layout = try #require(try store.layout())
    var seen: [String: Set<RecordValue>] = [:]
    for entity in layout.entities where Fixture.everything.entities[entity.name]?.isAbstract == false {
      let properties = Fixture.everything.properties(of: entity.name)
      try store.forEachRecord(of: entity.name) { record in
        guard record.entityName == entity.name else { return }
        for (name, inherited) in properties {
          guard !inherited.property.traits.isTransient else { continue }
          if let attribute = inherited.property.attribute, attribute.type != .composite {
            let value = record.values[name] ?? .null
            if case .unexpected = value { Issue.record("\(entity.name).\(name) \(value)") }
            if !attribute.traits.isOptional { #expect(value != .null, "\(entity.name).\(name)") }
            if name == "id" || entity.name == "Person" && name == "name", profile != .empty {
              #expect(seen["\(inherited.declaringEntityName).\(name)", default: []].insert(value).inserted, "\(name)")
            }
          } else if let relationship = inherited.property.relationship, !relationship.traits.isOptional {
            let targets =
              relationship.isToMany
              ? try store.destinationKeys(of: name, entity: entity.name, primaryKey: record.primaryKey)
              : record.toOne[name].map { [$0.primaryKey] } ?? []
            #expect(!targets.isEmpty, "\(entity.name).\(name) \(record.primaryKey)")
          }
        }
      }
    }
    try store.read { (database) throws -> Void in
      #expect(try String.fetchOne(database, sql: "PRAGMA integrity_check") == "ok")
      // Nothing leads to a record that is not there, one-to-one relationships lead back, and counts are right.
      let none = [
        "SELECT count(*) FROM ZPERSON WHERE ZSHIP NOT IN (SELECT Z_PK FROM ZBASE)",
        "SELECT count(*) FROM ZBASE AS s WHERE ZCAPTAIN IS NOT NULL AND s.Z_PK IS NOT "
          + "(SELECT ZCOMMANDS FROM ZPERSON AS p WHERE p.Z_PK = s.ZCAPTAIN)",
        "SELECT count(*) FROM ZPERSON AS a WHERE ZSPOUSE IS NOT NULL AND a.Z_PK IS NOT "
          + "(SELECT ZSPOUSE FROM ZPERSON AS b WHERE b.Z_PK = a.ZSPOUSE)",
        "SELECT count(*) FROM ZPERSON AS a WHERE ZNEXT IS NOT NULL AND a.Z_PK IS NOT "
          + "(SELECT ZPREVIOUS FROM ZPERSON AS b WHERE b.Z_PK = a.ZNEXT)",
        "SELECT count(*) FROM ZBASE AS s WHERE ZCREWCOUNT IS NOT (SELECT count(*) FROM ZPERSON WHERE ZSHIP = s.Z_PK)",
        "SELECT count(*) FROM ZBASE WHERE ZUPPER IS NOT upper(ZLABEL)",
        "SELECT count(*) FROM ZPERSON AS p WHERE ZSHIP IS NOT NULL AND Z_FOK_SHIP IS NULL",
        "SELECT count(*) FROM Z_PRIMARYKEY WHERE Z_SUPER = 0 AND Z_NAME = 'Base' AND "
          + "Z_MAX < (SELECT ifnull(max(Z_PK), 0) FROM ZBASE)",
      ]
      for sql in none { #expect(try Int.fetchOne(database, sql: sql) == 0, "\(sql)") }
      guard profile == .typical || profile == .edge else { return }
      for sql in [
        "SELECT count(*) FROM ZPERSON WHERE ZSPOUSE IS NOT NULL",
        "SELECT count(*) FROM ZPERSON WHERE ZNEXT IS NOT NULL",
        "SELECT count(*) FROM ZBASE WHERE ZCAPTAIN IS NOT NULL", "SELECT count(DISTINCT Z_ENT) - 2 FROM ZBASE",
        "SELECT count(*) FROM ZBASE WHERE hex(substr(ZPLANS, 1, 1)) = '02'",
        "SELECT count(*) FROM ZBASE WHERE hex(substr(ZPLANS, 1, 1)) = '01'",
        "SELECT count(*) FROM ZBASE WHERE ZNOTE IS NULL", "SELECT count(*) FROM ZBASE WHERE ZNOTE IS NOT NULL",
      ] {
        #expect((try Int.fetchOne(database, sql: sql) ?? 0) > 0, "\(sql)")
      }
    }
  }

  @Test func theEdgesAreThere() throws {
    let folder = try TemporaryFolder()
    let made = try StoreGenerator(Fixture.everything, options: .init(.edge, records: 60))
      .write(to: folder.appending("Store.sqlite"))
    let store = try PersistentStore(opening: made.path, model: Fixture.everything)
    defer { try? store.close() }
    var values: [String: Set<RecordValue>] = [:]
    try store.forEachRecord(of: "Ship") { record in
      for (name, value) in record.values { values[name, default: []].insert(value) }
    }
    #expect(values["small"]?.isSuperset(of: [.null, .integer(-32768), .integer(32767)]) == true)
    #expect(values["large"]?.isSuperset(of: [.integer(.min), .integer(.max)]) == true)
    #expect(values["length"]?.isSuperset(of: [.real(.greatestFiniteMagnitude), .real(.leastNonzeroMagnitude)]) == true)
    #expect(values["draught"]?.contains(.real(Double(Float.greatestFiniteMagnitude))) == true)
    #expect(values["launched"]?.isSuperset(of: [.date(-63_114_076_800), .date(63_113_904_000)]) == true)
    #expect(values["note"]?.isSuperset(of: [.null, .string("")]) == true)
    #expect(
      values["note"]?.contains { if case .string(let text) = $0 { text.utf8.count > 15_000 } else { false } } == true)
    #expect(values["picture"]?.isSuperset(of: [.data([]), .data([1, 2, 3])]) == true)
    #expect(values["plans"]?.contains { if case .externalData = $0 { true } else { false } } == true)
    #expect(made.externalFiles > 0)
  }

  @Test func boundsAreKept() throws {
    func bounded(_ name: String, _ type: AttributeType, _ low: String, _ high: String, optional: Bool = true)
      -> Property
    {
      .attribute(
        Attribute(
          traits: PropertyTraits(name: name, isOptional: optional), type: type, minimumValue: low, maximumValue: high))
    }
    let limited = model(
      entity(
        "Thing", bounded("percent", .integer16, "0", "100"), bounded("share", .double, "0.25", "0.75"),
        bounded("code", .string, "3", "5", optional: false), bounded("rank", .integer16, "1", "12", optional: false),
        bounded("day", .date, "0", "86400"), unique: [["code"], ["rank"]]))
    let folder = try TemporaryFolder()
    for profile in StoreProfile.allCases {
      let made = try StoreGenerator(limited, options: .init(profile, records: 40))
        .write(to: folder.appending("\(profile).sqlite"))
      // Twelve different ranks make twelve records.
      #expect(made.recordCount == (profile == .empty ? 0 : 12))
      let store = try PersistentStore(opening: made.path, model: limited)
      try store.forEachRecord(of: "Thing") { record in
        switch record.values["code"] {
        case .string(let text): #expect((3...5).contains(text.utf16.count), "\(text)")
        default: Issue.record("no code")
        }
        for (name, range) in [("percent", 0.0...100), ("share", 0.25...0.75), ("rank", 1...12), ("day", 0...86400)] {
          switch record.values[name] {
          case .integer(let number): #expect(range.contains(Double(number)), "\(name)")
          case .real(let number), .date(let number): #expect(range.contains(number), "\(name)")
          case .null: #expect(name != "rank")
          default: Issue.record("\(name)")
          }
        }
      }
      try store.close()
    }
  }

  @Test func impossibleModelsAreToldOfAndEnd() throws {
    let strange = model(
      entity("A", toOne("b", "B", inverse: "a", optional: false), toMany("many", "B", optional: false, min: 3, max: 2)),
      entity("B", toOne("a", "A", inverse: "b", optional: false)), entity("C", parent: "B"),
      entity("Empty", toOne("none", "Nobody", optional: false)), entity("Nobody", abstract: true))
    let folder = try TemporaryFolder()
    let made = try StoreGenerator(strange, options: .init(.edge, records: 5)).write(to: folder.appending("A.sqlite"))
    #expect(made.notes.contains { $0.kind == .relationship && $0.propertyName == "none" })
    #expect(made.recordCount < 5000)
  }

  @Test func nothingIsOverwrittenAndNothingIsLeftBehind() throws {
    let folder = try TemporaryFolder()
    try folder.write("mine", to: "Store.sqlite-wal")
    let before = try FolderContents(of: folder.path)
    let generator = try StoreGenerator(Fixture.everything, options: .init(.edge))
    do throws(PersistentStoreError) {
      try generator.write(to: folder.appending("Store.sqlite"))
      Issue.record("it was written")
    } catch {
      #expect(error.code == "file-exists")
    }
    #expect(try FolderContents(of: folder.path) == before)
    // A disk that fails in the middle leaves nothing either; removing what is not there may fail unnoticed.
    var failures = 0
    for step in 1...40 {
      let place = try TemporaryFolder()
      let trouble = Trouble(.failure(.noSpace), atStep: step)
      do throws(PersistentStoreError) {
        try generator.write(to: place.appending("Store.sqlite"), in: trouble.fileSystem)
      } catch {
        failures += 1
        #expect(error.isEnvironmental, "\(error)")
        #expect(try FileSystem().entries(of: place.path).isEmpty, "step \(step)")
      }
    }
    #expect(failures >= 20)
  }

  @Test func manyRecordsAreQuick() throws {
    let folder = try TemporaryFolder()
    let generator = try StoreGenerator(Fixture.everything, options: .init(.typical, records: 3000, journal: .log))
    var made: GeneratedStore?
    let time = try processorTime { made = try generator.write(to: folder.appending("Store.sqlite")) }
    print("generated \(made?.recordCount ?? 0) records in \(time)")
    #expect(time < .seconds(20))
  }
}
