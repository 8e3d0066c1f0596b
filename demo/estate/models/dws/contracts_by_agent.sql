-- Contract value by agent over the past 365 days, by day of signing: a day is in for 365 days, then out.
select
  AgentId,
  sum(ContractSubtotal) as contracts,
  count(*) as deals
from {{ ref('sales') }}
where StatusId = {{ var('closed_status') }}
  and to_date(ContractSigningDate) > date_sub(current_date(), 365)
  and to_date(ContractSigningDate) <= current_date()
group by AgentId
