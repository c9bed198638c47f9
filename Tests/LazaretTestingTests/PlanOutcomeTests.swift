import Foundation
import LazaretTesting
import Platform
import SystemPackage
import TestSupport
import Testing

/// What a plan promises, held against what the migration does, on histories drawn from a seed.
struct PlanOutcomeTests {
  static let seed: UInt64 = 20_261_123

  @Test func whatAPlanPromisesTheMigrationDoes() throws {
    let count = mutationCount(usually: 60)
    print("generated histories: seed \(Self.seed), \(count)")
    var outcomes: [String: Int] = [:]
    for offset in 0..<UInt64(count) {
      var generator = SeededGenerator(seed: Self.seed &+ offset)
      let bundle = try RandomHistory.bundle(using: &generator)
      for profile in StoreProfile.allCases {
        let place = "seed \(Self.seed) + \(offset), \(profile.rawValue)"
        let folder = try TemporaryFolder()
        let store: GeneratedStore
        do {
          store = try StoreGenerator(
            bundle.versions[0].model, options: .init(profile, seed: Self.seed &+ offset, records: 5)
          ).write(to: folder.appending("Store.sqlite"))
        } catch {
          Issue.record("\(place): no store was made: \(error)")
          continue
        }
        for via in [[], bundle.versions.count > 2 ? ["V2"] : []] {
          outcomes[try compare(store.path, bundle, via, folder, place), default: 0] += 1
        }
      }
    }
    // Every kind of outcome has been met.
    #expect(Set(outcomes.keys) == ["refused", "failing", "lossy", "clean"], "\(outcomes)")
  }

  /// Plans and migrates, and says which kind of outcome it was.
  private func compare(
    _ store: FilePath, _ bundle: ModelBundle, _ via: [String], _ folder: TemporaryFolder, _ place: String
  ) throws -> String {
    var options = Migrator.Options()
    options.via = via
    let migrator = Migrator(bundle, surroundings: Fixture.surroundings)
    let before = try FolderContents(of: folder.path)
    let plan = try migrator.plan(store, options: options)
    #expect(try FolderContents(of: folder.path) == before, "\(place)")
    #expect(plan.isCertain || !plan.isPossible, "\(place): \(plan)")
    let target = try TemporaryFolder()
    options.output = target.appending("New.sqlite")
    let result: Migrator.Result
    do throws(MigrationError) {
      result = try migrator.migrate(store, options: options)
    } catch {
      #expect(!plan.isPossible, "\(place): the plan said that it would be done: \(error)")
      if plan.refusals.isEmpty {
        #expect([.dataViolation, .constraintViolation].contains(error.kind), "\(place): \(error)")
        #expect(plan.steps.first { !$0.failures.isEmpty }?.name == error.step, "\(place): \(error)")
        return "failing"
      }
      #expect([.notInferable, .wouldLose].contains(error.kind), "\(place): \(error)")
      #expect(plan.refusals.map(\.detail) == error.refusals.map(\.detail), "\(place)")
      return "refused"
    }
    #expect(plan.isPossible, "\(place): \(plan.refusals) \(plan.failures)")
    #expect(plan.steps.map(\.losses) == result.steps.map(\.losses), "\(place)")
    #expect(plan.steps.map(\.name) == result.steps.map(\.step), "\(place)")
    #expect(plan.steps.map(\.leftBehind) == result.steps.map(\.leftBehind), "\(place)")
    return plan.losses.isEmpty ? "clean" : "lossy"
  }
}

/// Versions of a model as developers make them, from a generator of random numbers.
enum RandomHistory {
  private static let names = ["A", "B", "C"]
  private static let types: [AttributeType] = [
    .integer16, .integer32, .integer64, .decimal, .double, .float, .string, .boolean, .date, .binary, .uuid,
  ]

  static func bundle(using generator: inout SeededGenerator) throws -> ModelBundle {
    var made = first(using: &generator)
    var versions: [ModelVersion] = []
    let count = Int.random(in: 2...4, using: &generator)
    for number in 1...count {
      versions.append(Fixture.version("V\(number)", made, current: number == count))
      for change in 0..<Int.random(in: 1...3, using: &generator) {
        edit(&made, number * 10 + change, using: &generator)
      }
    }
    return try #require(ModelBundle(name: "History", versions: versions))
  }

  private static func first(using generator: inout SeededGenerator) -> ManagedObjectModel {
    var entities: [Entity] = []
    for (index, name) in names.prefix(Int.random(in: 1...3, using: &generator)).enumerated() {
      let parent = index > 0 && Int.random(in: 0..<4, using: &generator) == 0 ? names[0] : nil
      var made = entity(name, attribute("\(name)name"), parent: parent)
      for letter in ["p", "q", "r"] where Bool.random(using: &generator) {
        let property = randomAttribute(named: "\(name)\(letter)", using: &generator)
        made.properties[property.name] = property
      }
      entities.append(made)
    }
    var model = ManagedObjectModel(entities: entities)
    for name in model.entities.keys.sorted() where Bool.random(using: &generator) {
      relate(name, "\(name)to", &model, using: &generator)
    }
    return model
  }

  private static func randomAttribute(named name: String, using generator: inout SeededGenerator) -> Property {
    let type = types.randomElement(using: &generator) ?? .string
    let hasDefault = type == .integer32 && Bool.random(using: &generator)
    return attribute(
      name, type, optional: Int.random(in: 0..<3, using: &generator) > 0, default: hasDefault ? .integer(1) : nil)
  }

  /// Adds a relationship, mostly with its inverse.
  private static func relate(
    _ name: String, _ relationship: String, _ model: inout ManagedObjectModel, using generator: inout SeededGenerator
  ) {
    guard let other = model.entities.keys.sorted().randomElement(using: &generator) else { return }
    let inverse = Int.random(in: 0..<4, using: &generator) > 0 ? "\(relationship)Back" : nil
    let isOptional = Int.random(in: 0..<4, using: &generator) > 0
    model.entities[name]?.properties[relationship] =
      Bool.random(using: &generator)
      ? toOne(relationship, other, inverse: inverse, optional: isOptional)
      : toMany(
        relationship, other, inverse: inverse, optional: isOptional, ordered: Bool.random(using: &generator))
    guard let inverse else { return }
    model.entities[other]?.properties[inverse] =
      Bool.random(using: &generator)
      ? toOne(inverse, name, inverse: relationship) : toMany(inverse, name, inverse: relationship)
  }

  /// One change of a kind that developers make.
  private static func edit(
    _ model: inout ManagedObjectModel, _ number: Int, using generator: inout SeededGenerator
  ) {
    guard let name = model.entities.keys.sorted().randomElement(using: &generator) else { return }
    let attributes = (model.entities[name]?.properties ?? [:]).values.compactMap(\.attribute).map(\.traits.name)
      .sorted()
    let chosen = attributes.randomElement(using: &generator)
    switch Int.random(in: 0..<8, using: &generator) {
    case 0:
      let property = randomAttribute(named: "\(name)n\(number)", using: &generator)
      model.entities[name]?.properties[property.name] = property
    case 1: if let chosen { remove(chosen, of: name, &model) }
    case 2: if let chosen { rename(chosen, to: "\(chosen)x", of: name, &model) }
    case 3:
      change(chosen, of: name, &model) { $0.traits.isOptional.toggle() }
    case 4:
      let type = types.randomElement(using: &generator) ?? .string
      change(chosen, of: name, &model) { ($0.type, $0.defaultValue) = (type, nil) }
    case 5:
      let isUnique = model.entities[name]?.uniquenessConstraints.isEmpty == false
      model.entities[name]?.uniquenessConstraints = isUnique ? [] : chosen.map { [[$0]] } ?? []
    case 6: relate(name, "\(name)r\(number)", &model, using: &generator)
    default: model.entities[name]?.isAbstract.toggle()
    }
  }

  private static func remove(_ attribute: String, of entity: String, _ model: inout ManagedObjectModel) {
    model.entities[entity]?.properties[attribute] = nil
    model.entities[entity]?.uniquenessConstraints.removeAll { $0.contains(attribute) }
  }

  private static func rename(
    _ attribute: String, to new: String, of entity: String, _ model: inout ManagedObjectModel
  ) {
    guard case .attribute(var renamed)? = model.entities[entity]?.properties[attribute] else { return }
    remove(attribute, of: entity, &model)
    renamed.traits.explicitRenamingIdentifier = renamed.traits.renamingIdentifier
    renamed.traits.name = new
    model.entities[entity]?.properties[new] = .attribute(renamed)
  }

  private static func change(
    _ attribute: String?, of entity: String, _ model: inout ManagedObjectModel, _ edit: (inout Attribute) -> Void
  ) {
    guard let attribute, case .attribute(var changed)? = model.entities[entity]?.properties[attribute] else { return }
    edit(&changed)
    model.entities[entity]?.properties[attribute] = .attribute(changed)
  }
}
