import ManagedObjectModel
import Migration
import Platform
import SystemPackage
import TestSupport
import Testing

/// Mapping models that are damaged or made to do harm: they are read or refused, quickly, and never more.
struct MappingModelMutationTests {
  private func load(_ bytes: [UInt8], _ name: String, _ bundle: ModelBundle, _ folder: TemporaryFolder) throws -> String
  {
    let path = try folder.write(bytes, to: name)
    do {
      let loaded = try MappingModel.load(path: path, for: bundle)
      #expect(loaded.mappings.count == 1)
      return "loaded"
    } catch {
      return MigrationError(any: error).code
    }
  }

  @Test func damagedFilesAreReadOrRefused() throws {
    let bundle = try bundle(MappingModelFileTests.before, MappingModelFileTests.after)
    let folder = try TemporaryFolder()
    let seed: UInt64 = 0xCD_0001
    print("mapping model mutations from seed \(seed)")
    let forms = [
      ("M.cdm", try MappingModelFileTests.fixture.compiled()),
      ("xcmapping.xml", Array(try MappingModelFileTests.fixture.xml().utf8)),
    ]
    var outcomes: [String: Int] = [:]
    for number in 0..<mutationCount(usually: 400) {
      for (name, bytes) in forms {
        var mutation = Mutation(seed: seed &+ UInt64(number))
        let outcome = try load(mutation.apply(to: bytes), name, bundle, folder)
        outcomes["\(name) \(outcome)", default: 0] += 1
      }
    }
    print(outcomes.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", "))
    #expect(outcomes["M.cdm mapping-invalid", default: 0] > 0)
  }

  /// Archives that are whole as property lists and say something else.
  ///
  /// References are exchanged, keys lost, numbers and texts changed; damage to bytes alone hardly ever gets past the
  /// reader of property lists.
  @Test func archivesThatSaySomethingElseAreReadOrRefused() throws {
    let bundle = try bundle(MappingModelFileTests.before, MappingModelFileTests.after)
    let folder = try TemporaryFolder()
    let seed: UInt64 = 0xCD_0004
    print("mapping model archives from seed \(seed)")
    let top = try PropertyList(try MappingModelFileTests.fixture.compiled())
    let embedded = try PropertyList(try EditorModelFixture.bytes(of: MappingModelFileTests.before))
    var outcomes: [String: Int] = [:]
    for number in 0..<mutationCount(usually: 600) {
      var generator = SeededGenerator(seed: seed &+ UInt64(number))
      let changed = try Self.changed(top, &generator).binaryBytes()
      outcomes[try load(changed, "M.cdm", bundle, folder), default: 0] += 1
      do throws(ModelError) {
        _ = try EditorModel(Self.bytes(Self.changed(embedded, &generator))).model.versionHashes()
        outcomes["model", default: 0] += 1
      } catch {
        outcomes[error.code, default: 0] += 1
      }
    }
    print(outcomes.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", "))
    #expect(outcomes["loaded", default: 0] > 20 && outcomes["mapping-stale", default: 0] > 0)
    #expect(outcomes["model", default: 0] > 20)
  }

  private static func bytes(_ list: PropertyList) -> [UInt8] {
    // What cannot be written is as good as an empty file.
    (try? list.binaryBytes()) ?? []
  }

  private static func changed(_ top: PropertyList, _ generator: inout SeededGenerator) -> PropertyList {
    guard var fields = top.dictionary, var objects = fields["$objects"]?.array, objects.count > 2 else { return top }
    for _ in 0..<Int.random(in: 1...3, using: &generator) {
      let place = Int.random(in: 1..<objects.count, using: &generator)
      objects[place] = changed(objects[place], objects, &generator)
    }
    fields["$objects"] = .array(objects)
    return .dictionary(fields)
  }

  private static func changed(
    _ object: PropertyList, _ objects: [PropertyList], _ generator: inout SeededGenerator
  ) -> PropertyList {
    switch object {
    case .dictionary(var entries):
      guard let key = entries.keys.sorted().randomElement(using: &generator) else { return object }
      switch Int.random(in: 0..<4, using: &generator) {
      case 0: entries[key] = nil
      case 1: entries[key] = .uid(UInt64.random(in: 0..<UInt64(objects.count), using: &generator))
      case 2: entries[key] = .integer(Int64.random(in: -2...2100, using: &generator))
      default: entries[key] = entries[key].map { changed($0, objects, &generator) }
      }
      return .dictionary(entries)
    case .array(let elements):
      return .array(elements + elements.shuffled(using: &generator).prefix(2))
    case .uid: return .uid(UInt64.random(in: 0..<UInt64(objects.count), using: &generator))
    case .string:
      return ["source", "valueForKey:", "$source", "name.x", ""].randomElement(using: &generator)
        .map { .string($0) } ?? object
    case .integer: return .integer([-1, 0, 1, 3, 4, 14, 20, 50, .max].randomElement(using: &generator) ?? 0)
    default: return .null
    }
  }

  /// Damage inside of the archives that a source holds in base 64, which its own damage mostly does not reach.
  @Test func damagedEmbeddedModelsAreReadOrRefused() throws {
    let original = try EditorModelFixture.bytes(of: MappingModelFileTests.before)
    var outcomes = (read: 0, refused: 0)
    for number in 0..<mutationCount(usually: 1000) {
      var mutation = Mutation(seed: 0xCD_0002 &+ UInt64(number))
      do throws(ModelError) {
        _ = try EditorModel(mutation.apply(to: original)).model.versionHashes()
        outcomes.read += 1
      } catch {
        outcomes.refused += 1
      }
    }
    print("embedded models: \(outcomes)")
    #expect(outcomes.refused > 0)
  }

  /// An archive with one mapping whose expression is written by the test.
  private func archive(
    _ expression: (inout KeyedArchiveWriter) -> KeyedArchiveWriter.Reference, name: String = "x"
  ) throws -> [UInt8] {
    var archive = KeyedArchiveWriter()
    let value = expression(&archive)
    let property = archive.add(
      classes: ["NSPropertyMapping", "NSObject"],
      ["NSDestinationPropertyName": archive.string(name).value, "NSValueExpression": value.value])
    let properties = archive.array([property])
    let mapping = archive.add(
      classes: ["NSEntityMapping", "NSObject"],
      [
        "NSMappingType": .integer(5), "NSSourceEntityName": archive.string("A").value,
        "NSDestinationEntityName": archive.string("A").value, "NSAttributeMappings": properties.value,
        "NSEntityMigrationPolicyClassName": archive.string("App.Policy").value,
      ])
    let mappings = archive.array([mapping])
    let root = archive.add(classes: ["NSMappingModel", "NSObject"], ["NSEntityMappings": mappings.value])
    return try archive.bytes(root: root)
  }

  private func hostileBundle() throws -> ModelBundle {
    try bundle(model(entity("A", attribute("x"))), model(entity("A", attribute("x"), attribute("y"))))
  }

  @Test func expressionsThatContainThemselvesEnd() throws {
    let bytes = try archive { archive in
      let loop = archive.reserve()
      let arguments = archive.array([loop, loop, loop])
      archive.define(
        loop, classes: ["NSFunctionExpression", "NSExpression", "NSObject"],
        [
          "NSExpressionType": .integer(4), "NSSelectorName": archive.string("add:to:").value,
          "NSOperand": loop.value, "NSArguments": arguments.value,
        ])
      return loop
    }
    let folder = try TemporaryFolder()
    let start = ContinuousClock.now
    #expect(try load(bytes, "Loop.cdm", hostileBundle(), folder) == "loaded")
    #expect(ContinuousClock.now - start < .seconds(10))
  }

  /// A long text used a million times is small in the archive and endless when it is written out.
  @Test func expressionsThatMultiplyAreCutShort() throws {
    let bytes = try archive { archive in
      let text = archive.string(String(repeating: "long ", count: 100_000))
      var part = archive.add(
        classes: ["NSConstantValueExpression", "NSExpression", "NSObject"],
        ["NSExpressionType": .integer(0), "NSConstantValue": text.value])
      for _ in 0..<30 {
        let arguments = archive.array([part])
        part = archive.add(
          classes: ["NSFunctionExpression", "NSExpression", "NSObject"],
          [
            "NSExpressionType": .integer(4), "NSSelectorName": archive.string("stringByAppendingString:").value,
            "NSOperand": part.value, "NSArguments": arguments.value,
          ])
      }
      return part
    }
    let folder = try TemporaryFolder()
    let start = ContinuousClock.now
    #expect(try load(bytes, "Bomb.cdm", hostileBundle(), folder) == "loaded")
    #expect(ContinuousClock.now - start < .seconds(10))
  }

  @Test func mappingsThatAreUsedOverAndOverAreRefused() throws {
    var archive = KeyedArchiveWriter()
    let property = archive.add(
      classes: ["NSPropertyMapping", "NSObject"], ["NSDestinationPropertyName": archive.string("x").value])
    let properties = archive.array(Array(repeating: property, count: 100_000))
    var list: [KeyedArchiveWriter.Reference] = []
    for number in 0..<1000 {
      list.append(
        archive.add(
          classes: ["NSEntityMapping", "NSObject"],
          [
            "NSMappingName": archive.string("M\(number)").value, "NSSourceEntityName": archive.string("A").value,
            "NSDestinationEntityName": archive.string("A").value, "NSAttributeMappings": properties.value,
          ]))
    }
    let mappings = archive.array(list)
    let root = archive.add(classes: ["NSMappingModel", "NSObject"], ["NSEntityMappings": mappings.value])
    let folder = try TemporaryFolder()
    #expect(try load(try archive.bytes(root: root), "Shared.cdm", hostileBundle(), folder) == "mapping-invalid")
    #expect(
      try load(
        try self.archive({ _ in .null }, name: String(repeating: "x", count: 100)), "Long.cdm", hostileBundle(), folder)
        == "loaded")
  }

  @Test(arguments: [
    "<database/>", "<plist/>", "<database><object type=\"XDDEVMAPPINGMODEL\" id=\"a\"/></database>",
    "<database><object type=\"XDDEVMAPPINGMODEL\" id=\"a\"/><object type=\"XDDEVMAPPINGMODEL\" id=\"b\"/></database>",
    "<database><object type=\"XDDEVMAPPINGMODEL\" id=\"a\"><relationship name=\"entitymappings\" idrefs=\"a\"/></object></database>",
    "<!DOCTYPE database [<!ENTITY a \"b\">]><database/>", "<database>", "",
    """
    <database><object type="XDDEVMAPPINGMODEL" id="a"><relationship name="entitymappings" idrefs="b"/></object>
    <object type="XDDEVENTITYMAPPING" id="b"><attribute name="sourcename">A</attribute>
    <attribute name="destinationname">A</attribute><relationship name="attributemappings" idrefs="c c"/></object>
    <object type="XDDEVATTRIBUTEMAPPING" id="c"><attribute name="name">x</attribute></object></database>
    """,
  ])
  func sourcesThatContradictThemselvesAreRefused(_ text: String) throws {
    let folder = try TemporaryFolder()
    #expect(try load(Array(text.utf8), "xcmapping.xml", hostileBundle(), folder) == "mapping-invalid")
  }
}
