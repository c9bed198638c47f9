import ArgumentParser
import Foundation
import ManagedObjectModel
import Migration
import PersistentStore
import Platform
import SystemPackage

/// A custom migration of a large store: every car becomes a car and a sale that leads to it.
///
/// Goal: memory does not grow with the records, whether SQL or a policy does it. Peak memory is that of the process, so
/// each way has a run of its own.
struct CustomMigrationBenchmark {
  /// How it is carried out.
  enum Way: String, ExpressibleByArgument, CaseIterable {
    case sql, policy
  }

  let subject: BenchmarkStore
  let old: ManagedObjectModel
  let way: Way

  func run() throws {
    var new = old
    func optional(_ name: String, _ type: AttributeType) -> Property {
      .attribute(Attribute(traits: PropertyTraits(name: name, isOptional: true), type: type))
    }
    func toOne(_ name: String, _ destination: String, _ inverse: String) -> Property {
      .relationship(
        Relationship(
          traits: PropertyTraits(name: name, isOptional: true), destinationEntityName: destination, inverseName: inverse
        ))
    }
    new.entities["Car"]?.properties["sale"] = toOne("sale", "Sale", "car")
    new.entities["Sale"] = Entity(name: "Sale", properties: [optional("price", .double), toOne("car", "Car", "sale")])
    guard
      let bundle = ModelBundle(
        name: "Benchmark",
        versions: [
          ModelVersion(name: "V1", model: old, isCurrent: false), ModelVersion(name: "V2", model: new, isCurrent: true),
        ])
    else { return }
    let folder = subject.path.removingLastComponent().appending("custom-\(way.rawValue)")
    try? FileManager.default.removeItem(atPath: folder.string)
    try FileSystem().makeDirectory(folder)
    var options = Migrator.Options()
    options.output = folder.appending("store.sqlite")
    options.mappings = [mapping(new)]
    options.policies.register(className: "SalePolicy") { SalePolicy() }
    let clock = ContinuousClock()
    let start = clock.now
    let result = try Migrator(bundle).migrate(subject.path, options: options)
    let elapsed = clock.now - start
    let rows = result.steps.first?.entities.map { "\($0.entity) \($0.rows)" }.joined(separator: ", ") ?? ""
    let peak = peakMemory().map { "\(rounded($0)) MB" } ?? "unknown"
    print("custom migration by \(way.rawValue): \(elapsed), peak memory \(peak), records: \(rows)")
  }

  private func mapping(_ new: ManagedObjectModel) -> MappingModel {
    let car: [PropertyMapping] = ["maker", "mileage", "price", "sold"].map { name in
      PropertyMapping(PropertyPath(name), .copy(PropertyPath(name)))
    }
    var mappings = [
      EntityMapping(
        name: "OwnerToOwner", kind: .custom, source: "Owner", destination: "Owner",
        propertyMappings: [PropertyMapping("name", .copy("name")), PropertyMapping("cars", .relationship("cars"))]),
      EntityMapping(
        name: "CarToCar", kind: .custom, source: "Car", destination: "Car",
        propertyMappings: car + [PropertyMapping("owner", .relationship("owner"))],
        policyClassName: way == .policy ? "SalePolicy" : nil),
    ]
    if way == .sql {
      mappings.append(
        EntityMapping(
          name: "CarToSale", kind: .custom, source: "Car", destination: "Sale",
          propertyMappings: [
            PropertyMapping("price", .expression(.sql("price * 1.2"))),
            PropertyMapping("car", .destinations(mapping: "CarToCar", of: .record)),
          ]))
    }
    return MappingModel(origin: .code, source: old, destination: new, entityMappings: mappings)
  }
}

/// Makes a sale for each car, record by record.
private final class SalePolicy: EntityMigrationPolicy {
  func createDestinationInstances(
    for source: MigrationRecord, mapping: EntityMapping, in context: MigrationContext
  ) throws {
    try context.createMappedRecord(for: source, mapping: mapping)
    let sale = try context.createRecord(of: "Sale")
    if case .real(let price) = source["price"] { sale["price"] = .real(price * 1.2) }
    try context.associate(source: source, destination: sale, mapping: mapping)
  }

  func createRelationships(
    for destination: MigrationRecord, mapping: EntityMapping, in context: MigrationContext
  ) throws {
    try context.createMappedRelationships(for: destination)
    guard destination.entityName == "Sale",
      let source = try context.sourceRecords(for: mapping.name, destination: destination).first,
      let car = try context.destinationRecords(for: mapping.name, source: source).first(where: {
        $0.entityName == "Car"
      })
    else { return }
    try context.setRecords(of: "car", from: destination, to: [car])
  }
}
