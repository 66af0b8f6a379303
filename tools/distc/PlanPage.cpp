//===- PlanPage.cpp - The plan as a page for a browser --------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "tools/distc/PlanPage.h"
#include "passes/lower/plan/PlanReport.h"
#include "tools/distc/TimelineFile.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace distc {
namespace {

/// Grows when what readers of the document rely on changes.
constexpr int64_t kDocumentVersion = 1;

struct PagePart {
  llvm::StringLiteral name, text;
};
constexpr PagePart kParts[] = {
#include "tools/distc/PageParts.inc"
};

StringRef getPart(StringRef name) {
  for (const PagePart &part : kParts)
    if (part.name == name)
      return part.text;
  llvm_unreachable("the page names a part that is not embedded");
}

std::string escapeHtml(StringRef text) {
  std::string escaped;
  llvm::raw_string_ostream os(escaped);
  llvm::printHTMLEscaped(text, os);
  return escaped;
}

/// JSON inside of a script element: only strings have a '<', and none may end the element or begin a comment.
std::string escapeForScript(StringRef json) {
  std::string escaped;
  escaped.reserve(json.size() + json.size() / 16);
  for (char c : json)
    if (c == '<')
      escaped += "\\u003c";
    else
      escaped += c;
  return escaped;
}

LogicalResult writeDocument(Session &session, ModuleOp module, ArrayRef<TimelineFile> timelines,
                            llvm::raw_ostream &os) {
  llvm::json::OStream json(os, 1);
  LogicalResult written = success();
  json.object([&] {
    json.attribute("document", "distc plan");
    json.attribute("version", kDocumentVersion);
    written = writePlanReport(module, json);
    json.attributeArray("remarks", [&] {
      for (const PassRemark &remark : session.getRemarks())
        writeRow(json, [&](llvm::json::OStream &row) {
          row.object([&] {
            row.attribute("severity", remark.isWarning ? "warning" : "remark");
            if (!remark.node.empty())
              row.attribute("node", toJsonText(remark.node));
            row.attribute("text", toJsonText(remark.text));
          });
        });
    });
    json.attributeArray("timelines", [&] {
      for (const TimelineFile &timeline : timelines)
        json.object([&] { timeline.write(json); });
    });
  });
  return written;
}

} // namespace

int makePlanPage(Session &session, ModuleOp module, ModuleOp joint, const CompileOptions &options, std::string &page) {
  std::vector<TimelineFile> timelines;
  for (const std::string &path : options.timelines) {
    llvm::Expected<TimelineFile> timeline = TimelineFile::read(path);
    if (!timeline)
      return session.fail(llvm::toString(timeline.takeError()));
    timelines.push_back(std::move(*timeline));
  }
  // Why they are of another plan; empty where they are not.
  auto findMismatch = [&](ModuleOp plan) -> std::string {
    for (const TimelineFile &timeline : timelines)
      if (llvm::Error error = timeline.check(plan))
        return llvm::toString(std::move(error));
    return "";
  };
  if (std::string mismatch = findMismatch(module); !mismatch.empty()) {
    if (!joint || !findMismatch(joint).empty())
      return session.fail(mismatch);
    module = joint;
  }
  std::string document;
  llvm::raw_string_ostream os(document);
  if (failed(writeDocument(session, module, timelines, os)))
    return session.status();
  // What takes the place of a {{name}} in the page is not searched for further ones.
  llvm::raw_string_ostream out(page);
  StringRef rest = getPart("page.html");
  for (size_t begin; (begin = rest.find("{{")) != StringRef::npos;) {
    out << rest.take_front(begin);
    auto [name, behind] = rest.drop_front(begin + 2).split("}}");
    if (name == "title")
      out << escapeHtml(toJsonText(options.graph));
    else if (name == "plan")
      out << escapeForScript(document);
    else
      out << getPart(name);
    rest = behind;
  }
  out << rest;
  return kDone;
}

} // namespace distc
